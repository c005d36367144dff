#include "table_server/service/admission.h"

#include "absl/strings/str_cat.h"
#include "core/wire/error_detail.h"

namespace engram {

absl::StatusOr<Admission::Ticket> Admission::Enter(uint64_t bytes) {
  Usage usage;
  {
    MutexLock lock(&mutex_);
    if (usage_.gathers < options_.max_gathers &&
        bytes <= options_.max_bytes - usage_.bytes) {
      ++usage_.gathers;
      usage_.bytes += bytes;
      return Ticket(this, bytes);
    }
    usage = usage_;
  }
  return WithRetryAfter(
      MakeError(ErrorReason::kOverloaded,
                absl::StrCat(usage.gathers, " gathers of ", usage.bytes,
                             " bytes are in flight, the limits are ",
                             options_.max_gathers, " and ", options_.max_bytes,
                             "; this one needs ", bytes, " bytes")),
      options_.retry_after);
}

Admission::Usage Admission::usage() const {
  MutexLock lock(&mutex_);
  return usage_;
}

void Admission::Ticket::Release() {
  if (admission_ == nullptr) return;
  MutexLock lock(&admission_->mutex_);
  --admission_->usage_.gathers;
  admission_->usage_.bytes -= bytes_;
  admission_ = nullptr;
}

}  // namespace engram
