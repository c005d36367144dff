#ifndef ENGRAM_COMPUTE_BLOCK_GPU_GRAPH_H_
#define ENGRAM_COMPUTE_BLOCK_GPU_GRAPH_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/gpu/gpu_stream.h"
#include "core/gpu/gpu_types.h"

// CUDA's handle, for headers that must not include CUDA's.
struct CUgraphExec_st;

namespace engram {

// Work of a stream that was recorded once and is launched as one: with the
// same kernels, sizes and addresses every time.
//
// Thread safety: the object is not synchronised; it may not be launched again
// before the launch before it is done.
class GpuGraph {
 public:
  // Records what `enqueue` puts on the stream that it is given, without
  // running it. What is already on `stream` is not part of it. `enqueue` may
  // not allocate, wait, or use another stream; kernels should have run once
  // before, for CUDA loads them then.
  static absl::StatusOr<std::unique_ptr<const GpuGraph>> Capture(
      const GpuStream& stream,
      absl::FunctionRef<absl::Status(GpuStreamHandle)> enqueue);
  ~GpuGraph();
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;

  absl::Status Launch(const GpuStream& stream) const;

 private:
  explicit GpuGraph(CUgraphExec_st* executable) : executable_(executable) {}
  CUgraphExec_st* const executable_;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_BLOCK_GPU_GRAPH_H_
