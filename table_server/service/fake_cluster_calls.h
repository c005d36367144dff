#ifndef ENGRAM_TABLE_SERVER_SERVICE_FAKE_CLUSTER_CALLS_H_
#define ENGRAM_TABLE_SERVER_SERVICE_FAKE_CLUSTER_CALLS_H_

#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "table_server/service/cluster_calls.h"

namespace engram {

// Acknowledges whatever is asked and remembers the last call.
class FakeClusterCalls final : public ClusterCalls {
 public:
  absl::Status Exchange(const v1::ExchangeRequest& request,
                        absl::Span<const PartitionRef> to_free,
                        v1::ExchangeResponse& response) override {
    response.set_view_digest(request.view_digest());
    *response.mutable_acknowledged() = request.to_free();
    MutexLock lock(&mutex_);
    asked_.assign(to_free.begin(), to_free.end());
    return status_;
  }
  absl::Status Leave(const v1::LeaveRequest& request) override {
    MutexLock lock(&mutex_);
    left_ = request.server_name();
    return status_;
  }

  // What calls are answered from now on.
  void Answer(const absl::Status& status) {
    MutexLock lock(&mutex_);
    status_ = status;
  }
  std::vector<PartitionRef> asked() const {
    MutexLock lock(&mutex_);
    return asked_;
  }
  std::string left() const {
    MutexLock lock(&mutex_);
    return left_;
  }

 private:
  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<PartitionRef> asked_ ABSL_GUARDED_BY(mutex_);
  std::string left_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_FAKE_CLUSTER_CALLS_H_
