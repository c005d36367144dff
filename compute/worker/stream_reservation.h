#ifndef ENGRAM_COMPUTE_WORKER_STREAM_RESERVATION_H_
#define ENGRAM_COMPUTE_WORKER_STREAM_RESERVATION_H_

#include <cstdint>
#include <utility>

#include "compute/worker/caller_id.h"

namespace engram {

class StepEngine;

// Bytes that count against StepEngine's max_stream_bytes until this goes. Made
// by StepEngine::ReserveStreams; the engine outlives it.
class StreamReservation {
 public:
  StreamReservation() = default;
  StreamReservation(StreamReservation&& other) noexcept { Swap(other); }
  StreamReservation& operator=(StreamReservation&& other) noexcept {
    StreamReservation taken(std::move(other));
    Swap(taken);
    return *this;
  }
  ~StreamReservation();

 private:
  friend class StepEngine;
  StreamReservation(StepEngine* engine, CallerId caller, uint64_t bytes)
      : engine_(engine), caller_(std::move(caller)), bytes_(bytes) {}
  void Swap(StreamReservation& other) {
    std::swap(engine_, other.engine_);
    std::swap(caller_, other.caller_);
    std::swap(bytes_, other.bytes_);
  }

  StepEngine* engine_ = nullptr;
  CallerId caller_;
  uint64_t bytes_ = 0;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_STREAM_RESERVATION_H_
