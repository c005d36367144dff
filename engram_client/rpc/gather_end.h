#ifndef ENGRAM_ENGRAM_CLIENT_RPC_GATHER_END_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_GATHER_END_H_

#include <memory>
#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "core/base/mutex.h"
#include "engram_client/rpc/gather_environment.h"

namespace engram {

// Tells the end of one gather, once: to those who wait, to `done`, and to the
// client. When, and with which result, the gather says.
//
// Thread safety: all methods may be called concurrently. No lock is held over
// a callback.
class GatherEnd {
 public:
  using Done = absl::AnyInvocable<void(const absl::Status&)>;

  // Belongs to `gather`. `counted`: it counts as in flight.
  GatherEnd(const GatherEnvironment& environment, GatherOperation* gather,
            bool counted, Done done)
      : environment_(environment),
        gather_(gather),
        counted_(counted),
        calls_back_(done != nullptr),
        done_(std::move(done)) {}

  bool calls_back() const { return calls_back_; }

  // On a thread of the client, or if it calls nobody back on any.
  void Tell(absl::Status result);
  // On any thread: the timer thread tells. `gather`: this one's.
  void TellElsewhere(std::shared_ptr<GatherOperation> gather,
                     absl::Status result);

  // Until the end is being told.
  absl::Status Wait() const;
  bool ended() const;
  // As Wait, and `done` has returned. On a thread that runs a `done`, this
  // gather's or another's, Wait.
  void WaitUntilTold();

 private:
  // Whether the caller is now the one to tell what the timer thread was to.
  bool TakeQueued() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::exchange(queued_, false);
  }
  void TellResult();

  const GatherEnvironment& environment_;
  GatherOperation* const gather_;
  const bool counted_;
  const bool calls_back_;

  mutable Mutex mutex_;
  mutable CondVar changed_;
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  bool queued_ ABSL_GUARDED_BY(mutex_) = false;  // for the timer thread
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool told_ ABSL_GUARDED_BY(mutex_) = false;  // done has returned
  Done done_ ABSL_GUARDED_BY(mutex_);
  std::thread::id telling_thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_GATHER_END_H_
