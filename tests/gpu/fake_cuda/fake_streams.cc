#include <chrono>
#include <memory>
#include <vector>

#include "tests/gpu/fake_cuda/fake_device.h"

using engram::fake_cuda::Device;
using engram::fake_cuda::Fail;
using engram::fake_cuda::Operation;
using engram::fake_cuda::TimePoint;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const auto lock = Device::Get().Lock();
  *stream = Device::Get().AddStream();
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const auto lock = Device::Get().Lock();
  Device::Get().Run(*stream, stream->enqueued);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Device& device = Device::Get();
  const auto lock = device.Lock();
  CUstream_st& stream = device.Find(handle);
  if (stream.capture != nullptr) return Fail(cudaErrorStreamCaptureUnsupported);
  if (device.faults.lost) return Fail(cudaErrorIllegalAddress);
  device.Run(stream, stream.enqueued);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event,
                                unsigned) {
  Device& device = Device::Get();
  const auto lock = device.Lock();
  if (device.Find(handle).capture != nullptr) {
    return Fail(cudaErrorStreamCaptureUnsupported);
  }
  if (event->stream == nullptr) return cudaSuccess;  // never recorded
  device.Put(device.Find(handle),
             [on = event->stream, until = event->position] {
               Device::Get().Run(*on, until);
             });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const auto lock = Device::Get().Lock();
  if (stream == nullptr || stream->capture != nullptr) {
    return Fail(cudaErrorStreamCaptureUnsupported);
  }
  stream->capture = std::make_unique<CUgraph_st>();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const auto lock = Device::Get().Lock();
  if (stream->capture == nullptr) return Fail(cudaErrorInvalidValue);
  *graph = stream->capture.release();
  return cudaSuccess;
}

// ---- events ----

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  Device& device = Device::Get();
  const auto lock = device.Lock();
  CUstream_st& stream = device.Find(handle);
  if (stream.capture != nullptr) return Fail(cudaErrorStreamCaptureUnsupported);
  if (device.faults.lost) return Fail(cudaErrorIllegalAddress);
  event->stream = &stream;
  event->position = stream.enqueued + 1;
  event->passed = std::make_shared<TimePoint>();
  device.Put(stream, [passed = event->passed] {
    *passed = std::chrono::steady_clock::now();
  });
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Device& device = Device::Get();
  const auto lock = device.Lock();
  if (event->stream != nullptr) device.Run(*event->stream, event->position);
  return cudaSuccess;
}

// Not ready half of the time that it is asked.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  Device& device = Device::Get();
  const auto lock = device.Lock();
  if (device.faults.lost) return Fail(cudaErrorIllegalAddress);
  if (device.faults.stuck) return Fail(cudaErrorNotReady);
  if (event->stream == nullptr || event->stream->done >= event->position) {
    return cudaSuccess;
  }
  if (device.Draw() % 2 == 0) return Fail(cudaErrorNotReady);
  return cudaEventSynchronize(event);
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start,
                                 cudaEvent_t end) {
  const auto lock = Device::Get().Lock();
  if (start->passed == nullptr || end->passed == nullptr) {
    return Fail(cudaErrorInvalidValue);
  }
  if (start->stream->done < start->position ||
      end->stream->done < end->position) {
    return cudaErrorNotReady;
  }
  *ms = std::chrono::duration<float, std::milli>(*end->passed - *start->passed)
            .count();
  return cudaSuccess;
}

// ---- graphs ----

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = new CUgraphExec_st{
      std::make_shared<const std::vector<Operation>>(graph->operations)};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const auto lock = Device::Get().Lock();
  if (Device::Get().faults.lost) return Fail(cudaErrorIllegalAddress);
  Device::Get().Put(Device::Get().Find(stream),
                    [operations = executable->operations] {
                      for (const Operation& operation : *operations) {
                        operation();
                      }
                    });
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
