#ifndef ENGRAM_TABLE_SERVER_GATHER_FETCH_JOIN_H_
#define ENGRAM_TABLE_SERVER_GATHER_FETCH_JOIN_H_

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "core/base/mutex.h"
#include "table_server/tier/row_tier.h"

namespace engram {

// Tells of many fetches as of one: once all have ended, with the first error.
// Thread safety: all methods may be called concurrently.
class FetchJoin {
 public:
  FetchJoin(size_t count, RowTier::OnRows done)
      : left_(count), done_(std::move(done)) {}

  void Ended(absl::Status status) {
    {
      MutexLock lock(&mutex_);
      if (status_.ok()) status_ = std::move(status);
      if (--left_ > 0) return;
      status = status_;
    }
    // Nobody else comes here any more.
    RowTier::OnRows done = std::move(done_);
    done(std::move(status));
  }

 private:
  Mutex mutex_;
  size_t left_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  RowTier::OnRows done_;  // of whoever ends the last
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_GATHER_FETCH_JOIN_H_
