#ifndef ENGRAM_CORE_MEMBERSHIP_MEMBER_WATCHER_H_
#define ENGRAM_CORE_MEMBERSHIP_MEMBER_WATCHER_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/membership/member_source.h"

namespace engram {

// Reads a source again and again on a thread of its own.
class MemberWatcher {
 public:
  using Observation = absl::StatusOr<std::vector<Member>>;
  struct Options {
    absl::Duration interval = absl::Seconds(1);
    absl::Duration timeout = absl::Seconds(3);  // of one look
  };

  // `on_read` is told of every look, good or bad, on the watcher's thread; it
  // may block for a while, which delays the next look.
  MemberWatcher(std::shared_ptr<MemberSource> source, Options options,
                std::function<void(const Observation&)> on_read);
  // Waits for the look under way, of at most `timeout`, and for `on_read`.
  ~MemberWatcher();

  MemberWatcher(const MemberWatcher&) = delete;
  MemberWatcher& operator=(const MemberWatcher&) = delete;

 private:
  void Run();
  bool Stopping();
  // False: there is none, the watcher ends.
  bool AwaitNextLook();

  const std::shared_ptr<MemberSource> source_;
  const Options options_;
  const std::function<void(const Observation&)> on_read_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace engram

#endif  // ENGRAM_CORE_MEMBERSHIP_MEMBER_WATCHER_H_
