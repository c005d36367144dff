#include "compute/worker/tables_watch.h"

namespace engram {

void TablesWatch::Observe(bool covered, absl::Time now) {
  if (covered == reliable_) {
    against_since_.reset();
    return;
  }
  if (!against_since_.has_value()) against_since_ = now;
  const absl::Duration wanted = reliable_ ? kLostAfter : kBackAfter;
  if (now - *against_since_ < wanted) return;
  reliable_ = covered;
  against_since_.reset();
}

}  // namespace engram
