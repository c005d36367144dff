#include "core/membership/member_watcher.h"

#include <utility>

#include "absl/time/clock.h"

namespace engram {

MemberWatcher::MemberWatcher(std::shared_ptr<MemberSource> source,
                             Options options,
                             std::function<void(const Observation&)> on_read)
    : source_(std::move(source)),
      options_(options),
      on_read_(std::move(on_read)),
      thread_([this] { Run(); }) {}

MemberWatcher::~MemberWatcher() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

bool MemberWatcher::Stopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

bool MemberWatcher::AwaitNextLook() {
  MutexLock lock(&mutex_);
  while (!stopping_ && changed_.WaitFor(&mutex_, options_.interval)) {
  }
  return !stopping_;
}

void MemberWatcher::Run() {
  do {
    const Observation observation =
        source_->Read(absl::Now() + options_.timeout);
    if (Stopping()) return;
    on_read_(observation);
  } while (AwaitNextLook());
}

}  // namespace engram
