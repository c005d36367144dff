#ifndef ENGRAM_ENGRAM_CLIENT_RPC_GATE_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_GATE_H_

#include <atomic>
#include <cstdint>

namespace engram {

// Lets threads in until it is closed, and says who is the last to be at it:
// that one does what had to wait for the others, so nobody blocks.
//
// Exactly one call, of Close or of a Leave, returns true. Whatever was done
// inside has happened before it.
//
// Thread safety: all methods may be called concurrently.
class Gate {
 public:
  // False: it is closed.
  [[nodiscard]] bool Enter() {
    uint32_t state = state_.load(std::memory_order_relaxed);
    do {
      if ((state & kClosed) != 0) return false;
    } while (!state_.compare_exchange_weak(state, state + kOne,
                                           std::memory_order_acquire,
                                           std::memory_order_relaxed));
    return true;
  }

  // Once for each Enter that returned true. True: it is closed and empty now.
  [[nodiscard]] bool Leave() {
    return state_.fetch_sub(kOne, std::memory_order_acq_rel) ==
           (kOne | kClosed);
  }

  // Once. True: nobody is inside.
  [[nodiscard]] bool Close() {
    return state_.fetch_or(kClosed, std::memory_order_acq_rel) == 0;
  }

 private:
  static constexpr uint32_t kClosed = 1;
  static constexpr uint32_t kOne = 2;

  std::atomic<uint32_t> state_{0};  // kOne for each inside, kClosed
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_GATE_H_
