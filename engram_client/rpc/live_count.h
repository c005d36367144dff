#ifndef ENGRAM_ENGRAM_CLIENT_RPC_LIVE_COUNT_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_LIVE_COUNT_H_

#include <cstdint>
#include <memory>

#include "core/base/mutex.h"

namespace engram {

// Waits until objects that others own are gone: each holds a token, as its
// first member, so that it is the last to go.
//
// Thread safety: all methods may be called concurrently.
class LiveCount {
 public:
  using Token = std::shared_ptr<void>;

  Token Take() {
    MutexLock lock(&state_->mutex);
    ++state_->tokens;
    // The state may outlive the count, by the last lines of Drop.
    return Token(state_.get(), [state = state_](void*) { state->Drop(); });
  }

  void WaitForNone() {
    MutexLock lock(&state_->mutex);
    while (state_->tokens > 0) state_->changed.Wait(&state_->mutex);
  }

 private:
  struct State {
    void Drop() {
      MutexLock lock(&mutex);
      --tokens;
      changed.NotifyAll();
    }

    Mutex mutex;
    CondVar changed;
    uint64_t tokens ABSL_GUARDED_BY(mutex) = 0;
  };

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_LIVE_COUNT_H_
