#ifndef ENGRAM_CORE_RPC_QUEUE_LOOP_H_
#define ENGRAM_CORE_RPC_QUEUE_LOOP_H_

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace engram {

// The end of one operation on a completion queue. `tag()` is what gRPC is
// given; the event must live until it has been told.
class QueueEvent {
 public:
  // `ok` as grpc::CompletionQueue::Next has it. Must not block: the thread
  // serves others too.
  virtual void OnQueueEvent(bool ok) = 0;
  void* tag() { return this; }

 protected:
  ~QueueEvent() = default;
};

// An event that calls `method` of its owner.
template <typename Owner, void (Owner::*method)(bool)>
class MemberEvent final : public QueueEvent {
 public:
  explicit MemberEvent(Owner* owner) : owner_(owner) {}
  MemberEvent(const MemberEvent&) = delete;
  MemberEvent& operator=(const MemberEvent&) = delete;
  void OnQueueEvent(bool ok) override { (owner_->*method)(ok); }

 private:
  Owner* const owner_;
};

// Threads that serve one completion queue: whoever sees the end of an
// operation goes on with what follows, without a hop to another thread.
//
// Deferred tasks run when no event waits, so that what is quick and urgent
// (events) goes before what is long (tasks); one task goes in between after
// many events in a row. Tasks that are quick too, as what follows an event
// elsewhere, are urgent: they and events take turns.
//
// Thread safety: all methods may be called concurrently; Stop not on a thread
// of the loop.
class QueueLoop {
 public:
  struct Options {
    size_t thread_count = 1;
    // A thread looks for events this long before it sleeps until one comes.
    // Costs a core while it lasts, saves the time to wake up.
    absl::Duration spin;
    std::vector<int> cpus;  // the threads stay on these; empty: on any
  };

  // Keeps the queue open. Whatever starts operations without being asked to,
  // as a call does that answers later, holds one until it does so no more.
  class Hold {
   public:
    explicit Hold(QueueLoop& loop) : loop_(loop) { loop_.AddHold(); }
    Hold(const Hold& other) : Hold(other.loop_) {}
    Hold& operator=(const Hold&) = delete;
    ~Hold() { loop_.RemoveHold(); }

   private:
    QueueLoop& loop_;
  };

  QueueLoop(std::unique_ptr<grpc::CompletionQueue> queue, Options options);
  ~QueueLoop();  // Stop
  QueueLoop(const QueueLoop&) = delete;
  QueueLoop& operator=(const QueueLoop&) = delete;

  grpc::CompletionQueue& queue() { return *queue_; }

  // Runs `task` once on a thread of the loop. Bounding tasks is up to the
  // caller. False after Stop began: the task is dropped.
  bool Defer(absl::AnyInvocable<void()> task);
  // The same before all tasks that are not urgent. REQUIRES: it is quick.
  bool DeferUrgent(absl::AnyInvocable<void()> task);

  // Whether the calling thread is one of the loop.
  bool OnLoopThread() const;

  // Ends the queue and joins the threads, once nobody holds the queue, no
  // operation is under way and what is deferred has run. REQUIRES: what holds
  // the queue comes to its end (there is no way to end it before: the log says
  // when that takes long), and nobody else starts operations any more.
  void Stop();

 private:
  void AddHold();
  void RemoveHold();
  void Run();
  // The next event, or null when there is deferred work to do first.
  // False: the queue has ended.
  bool NextEvent(QueueEvent** event, bool* ok);
  bool Spin(QueueEvent** event, bool* ok);
  using Tasks = std::deque<absl::AnyInvocable<void()>>;
  bool Add(Tasks& tasks, absl::AnyInvocable<void()> task)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of both kinds, if there is one; false: it was urgent.
  bool RunOneDeferred(bool urgent_first);
  // Makes a sleeping thread look at the deferred tasks.
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnWoken(bool ok);

  const std::unique_ptr<grpc::CompletionQueue> queue_;
  const Options options_;
  MemberEvent<QueueLoop, &QueueLoop::OnWoken> woken_{this};
  std::atomic<size_t> deferred_count_{0};  // of both kinds
  std::atomic<size_t> urgent_count_{0};
  std::atomic<size_t> sleeping_{0};
  std::atomic<bool> spinning_{false};

  Mutex mutex_;
  Tasks deferred_ ABSL_GUARDED_BY(mutex_);
  Tasks urgent_ ABSL_GUARDED_BY(mutex_);
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
  bool waking_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  size_t holds_ ABSL_GUARDED_BY(mutex_) = 0;
  CondVar released_;
  std::vector<std::thread> threads_;
};

}  // namespace engram

#endif  // ENGRAM_CORE_RPC_QUEUE_LOOP_H_
