#ifndef ENGRAM_COMPUTE_PROJECT_PROJECT_LAUNCH_H_
#define ENGRAM_COMPUTE_PROJECT_PROJECT_LAUNCH_H_

#include "compute/project/project_args.h"
#include "compute/project/project_shape.h"
#include "core/gpu/gpu_types.h"

namespace engram {

// Puts the product on the stream and returns the launch's cudaError_t.
// REQUIRES: ProjectFits(args).
int LaunchProject(ProjectTileSize size, const ProjectArgs& args,
                  GpuStreamHandle stream);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_PROJECT_PROJECT_LAUNCH_H_
