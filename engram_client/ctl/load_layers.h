#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_LAYERS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_LAYERS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/ids.h"

namespace engram::ctl {

// The layers of `--layers`, or all there are where it names none. NOT_FOUND
// lists what there is; INVALID_ARGUMENT: a layer twice.
absl::StatusOr<std::vector<LayerId>> ChooseLayers(
    absl::Span<const LayerId> all, absl::Span<const LayerId> wanted);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_LAYERS_H_
