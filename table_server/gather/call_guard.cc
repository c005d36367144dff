#include "table_server/gather/call_guard.h"

#include "absl/strings/str_cat.h"

namespace engram {

absl::Status CallGuard::Check() const {
  if (cancelled_.load(std::memory_order_relaxed)) {
    return absl::CancelledError("the caller cancelled this gather");
  }
  if (deadline_ == absl::InfiniteFuture()) return absl::OkStatus();
  const absl::Duration late = clock_.Now() - deadline_;
  if (late < absl::ZeroDuration()) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(
      "the deadline of this gather passed ", absl::FormatDuration(late),
      " ago; nothing more is gathered"));
}

}  // namespace engram
