#include "compute/block/gpu_graph.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "absl/memory/memory.h"
#include "core/base/status_macros.h"
#include "core/gpu/gpu_status.h"

namespace engram {
namespace {

struct DestroyGraph {
  void operator()(CUgraph_st* graph) const { cudaGraphDestroy(graph); }
};
using GraphPtr = std::unique_ptr<CUgraph_st, DestroyGraph>;

// Other threads may call CUDA meanwhile as they like.
absl::StatusOr<GraphPtr> Record(
    const GpuStream& stream,
    absl::FunctionRef<absl::Status(GpuStreamHandle)> enqueue) {
  ENGRAM_RETURN_IF_GPU_ERROR(
      cudaStreamBeginCapture(stream.handle(), cudaStreamCaptureModeThreadLocal),
      "beginning to record a graph");
  const absl::Status enqueued = enqueue(stream.handle());
  // Also after an error, for the stream is of no other use before it.
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream.handle(), &graph);
  if (ended != cudaSuccess) cudaGetLastError();  // is not the next launch's
  GraphPtr owned(graph);
  ENGRAM_RETURN_IF_ERROR(enqueued);
  ENGRAM_RETURN_IF_GPU_ERROR(ended, "recording a graph");
  return owned;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const GpuGraph>> GpuGraph::Capture(
    const GpuStream& stream,
    absl::FunctionRef<absl::Status(GpuStreamHandle)> enqueue) {
  ENGRAM_ASSIGN_OR_RETURN(const GraphPtr graph, Record(stream, enqueue));
  cudaGraphExec_t executable = nullptr;
  ENGRAM_RETURN_IF_GPU_ERROR(cudaGraphInstantiate(&executable, graph.get(), 0),
                             "making a graph ready to launch");
  return absl::WrapUnique(new GpuGraph(executable));
}

GpuGraph::~GpuGraph() { cudaGraphExecDestroy(executable_); }

absl::Status GpuGraph::Launch(const GpuStream& stream) const {
  return GpuStatus(cudaGraphLaunch(executable_, stream.handle()),
                   "launching a graph");
}

}  // namespace engram
