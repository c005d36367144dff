#ifndef ENGRAM_CORE_GPU_GPU_STREAM_H_
#define ENGRAM_CORE_GPU_GPU_STREAM_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/gpu/gpu_types.h"

namespace engram {

class GpuEvent;

// A stream of the device that is selected when it is made. Work of one stream
// runs in order, that of different streams side by side.
//
// Thread safety: the object may be used by several threads, as CUDA allows;
// what order their work then has is theirs to settle.
class GpuStream {
 public:
  static absl::StatusOr<std::unique_ptr<GpuStream>> Create();
  // Waits for the stream's work.
  ~GpuStream();
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;

  GpuStreamHandle handle() const { return handle_; }

  // What is put on this stream from now on starts after `event`.
  absl::Status Wait(const GpuEvent& event);
  // Waits on the calling thread until all work so far is done. An error may
  // be of any earlier work of the process.
  absl::Status Synchronize();

 private:
  explicit GpuStream(GpuStreamHandle handle) : handle_(handle) {}
  const GpuStreamHandle handle_;
};

// A point in a stream's work, with a time.
class GpuEvent {
 public:
  static absl::StatusOr<std::unique_ptr<GpuEvent>> Create();
  ~GpuEvent();
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  GpuEventHandle handle() const { return handle_; }

  absl::Status Record(const GpuStream& stream);
  // DEADLINE_EXCEEDED: what was recorded is still under way. Polls: for
  // waits that must end, not for short ones.
  absl::Status WaitUntil(absl::Time deadline) const;
  // Time on the device from `start` to this event; both must have passed.
  absl::StatusOr<absl::Duration> Since(const GpuEvent& start) const;

 private:
  explicit GpuEvent(GpuEventHandle handle) : handle_(handle) {}
  const GpuEventHandle handle_;
};

// Copies in the stream's order. Host memory should be pinned: then the call
// returns at once and the memory must stay until the stream is past it.
absl::Status CopyToDevice(void* device, const void* host, size_t size_bytes,
                          GpuStreamHandle stream);
absl::Status CopyToHost(void* host, const void* device, size_t size_bytes,
                        GpuStreamHandle stream);

}  // namespace engram

#endif  // ENGRAM_CORE_GPU_GPU_STREAM_H_
