#include "engram_client/rpc/gather_end.h"

#include <cstdint>

namespace engram {
namespace {

// Ends that this thread is telling, one inside the other: only a thread of the
// client has any.
thread_local uint32_t endings_told_here = 0;

}  // namespace

void GatherEnd::Tell(absl::Status result) {
  {
    MutexLock lock(&mutex_);
    result_ = std::move(result);
  }
  TellResult();
}

void GatherEnd::TellElsewhere(std::shared_ptr<GatherOperation> gather,
                              absl::Status result) {
  if (environment_.timers->OnTimerThread()) return Tell(std::move(result));
  // Once another thread may tell, the environment may be gone.
  MutexLock lock(&mutex_);
  result_ = std::move(result);
  queued_ = true;
  changed_.NotifyAll();
  environment_.timers->Post([this, gather = std::move(gather)] {
    {
      MutexLock lock(&mutex_);
      if (!TakeQueued()) return;
    }
    TellResult();
  });
}

void GatherEnd::TellResult() {
  Done done;
  absl::Status result;
  {
    MutexLock lock(&mutex_);
    result = result_;
  }
  environment_.monitor->metrics().gathers(result.code()).Increment();
  if (counted_) environment_.on_ending();
  {
    MutexLock lock(&mutex_);
    ended_ = true;
    telling_thread_ = std::this_thread::get_id();
    done = std::move(done_);
    changed_.NotifyAll();
  }
  ++endings_told_here;
  if (done) done(result);
  done = nullptr;  // what it captured ends before the gather does
  --endings_told_here;
  {
    MutexLock lock(&mutex_);
    told_ = true;
    telling_thread_ = {};
    changed_.NotifyAll();
  }
  environment_.on_finished(gather_);
}

absl::Status GatherEnd::Wait() const {
  MutexLock lock(&mutex_);
  while (!ended_) changed_.Wait(&mutex_);
  return result_;
}

bool GatherEnd::ended() const {
  MutexLock lock(&mutex_);
  return ended_;
}

void GatherEnd::WaitUntilTold() {
  bool tell_here = false;
  {
    MutexLock lock(&mutex_);
    while (!told_ && telling_thread_ != std::this_thread::get_id()) {
      if (endings_told_here > 0) {
        // A `done` of another gather waits for this one. This one's may wait
        // for that, on another thread.
        if (ended_) return;
        // What is queued on the timer thread may stand behind that `done`.
        tell_here = TakeQueued();
        if (tell_here) break;
      }
      changed_.Wait(&mutex_);
    }
  }
  if (tell_here) TellResult();
}

}  // namespace engram
