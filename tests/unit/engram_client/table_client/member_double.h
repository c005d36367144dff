#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_TABLE_CLIENT_MEMBER_DOUBLE_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_TABLE_CLIENT_MEMBER_DOUBLE_H_

#include <optional>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/membership/member_source.h"
#include "core/membership/member_watcher.h"

namespace engram {

// Members that the test gives; before that, looks get no answer.
class MemberDouble final : public MemberSource {
 public:
  using Answer = MemberWatcher::Observation;

  void Set(Answer answer) {
    MutexLock lock(&mutex_);
    answer_ = std::move(answer);
    changed_.NotifyAll();
  }

  Answer Read(absl::Time deadline) override {
    MutexLock lock(&mutex_);
    while (!answer_.has_value()) {
      if (!changed_.WaitUntil(&mutex_, deadline)) {
        return absl::DeadlineExceededError("no answer");
      }
    }
    return *answer_;
  }
  bool absence_is_departure() const override { return false; }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::optional<Answer> answer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_TABLE_CLIENT_MEMBER_DOUBLE_H_
