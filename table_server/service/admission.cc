#include "table_server/service/admission.h"

#include "absl/strings/str_cat.h"
#include "core/wire/error_detail.h"

namespace engram {
namespace {

bool Fits(const Admission::Usage& usage, const Admission::Usage& limit,
          uint64_t bytes) {
  return usage.gathers < limit.gathers && bytes <= limit.bytes &&
         usage.bytes <= limit.bytes - bytes;
}

void Add(Admission::Usage& usage, uint64_t bytes) {
  ++usage.gathers;
  usage.bytes += bytes;
}

void Subtract(Admission::Usage& usage, uint64_t bytes) {
  --usage.gathers;
  usage.bytes -= bytes;
}

}  // namespace

absl::StatusOr<Admission::Ticket> Admission::Enter(uint64_t bytes,
                                                   uint64_t asked_bytes) {
  const Usage limit = {options_.max_gathers, options_.max_bytes};
  const Usage large_limit = {options_.max_large_gathers(),
                             options_.max_large_bytes()};
  const bool large = asked_bytes > options_.small_bytes;
  Usage usage;
  Usage large_usage;
  {
    MutexLock lock(&mutex_);
    if (Fits(usage_, limit, bytes) &&
        (!large || Fits(large_usage_, large_limit, bytes))) {
      Add(usage_, bytes);
      if (large) Add(large_usage_, bytes);
      return Ticket(this, bytes, large);
    }
    usage = usage_;
    large_usage = large_usage_;
  }
  if (!Fits(usage, limit, bytes)) {
    return Overloaded("gathers", usage, limit, bytes);
  }
  return Overloaded("large gathers", large_usage, large_limit, bytes);
}

absl::Status Admission::Overloaded(const char* kind, const Usage& usage,
                                   const Usage& limit, uint64_t bytes) const {
  return WithRetryAfter(
      MakeError(ErrorReason::kOverloaded,
                absl::StrCat(usage.gathers, " ", kind, " of ", usage.bytes,
                             " bytes are in flight, the limits are ",
                             limit.gathers, " and ", limit.bytes,
                             "; this one needs ", bytes, " bytes")),
      options_.retry_after);
}

Admission::Usage Admission::usage() const {
  MutexLock lock(&mutex_);
  return usage_;
}

Admission::Usage Admission::large_usage() const {
  MutexLock lock(&mutex_);
  return large_usage_;
}

void Admission::Ticket::Release() {
  if (admission_ == nullptr) return;
  MutexLock lock(&admission_->mutex_);
  Subtract(admission_->usage_, bytes_);
  if (large_) Subtract(admission_->large_usage_, bytes_);
  admission_ = nullptr;
}

}  // namespace engram
