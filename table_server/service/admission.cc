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
                                                   uint64_t asked_bytes,
                                                   absl::Duration left) {
  const Usage limit = {options_.max_gathers, options_.max_bytes};
  const Usage large_limit = {options_.max_large_gathers(),
                             options_.max_large_bytes()};
  const bool large = asked_bytes > options_.small_bytes;
  Usage usage;
  Usage large_usage;
  absl::Duration expected;
  {
    MutexLock lock(&mutex_);
    if (Fits(usage_, limit, bytes) &&
        (!large || Fits(large_usage_, large_limit, bytes))) {
      expected = Expected(asked_bytes, large);
      if (expected <= std::max(left, absl::ZeroDuration())) {
        Add(usage_, bytes);
        if (large) Add(large_usage_, bytes);
        asked_bytes_ += asked_bytes;
        return Ticket(this, {bytes, asked_bytes, asked_bytes_, large});
      }
    }
    usage = usage_;
    large_usage = large_usage_;
  }
  if (expected > absl::ZeroDuration()) {
    return TooLate(large_usage, expected, left);
  }
  if (!Fits(usage, limit, bytes)) {
    return Overloaded("gathers", usage, limit, bytes);
  }
  return Overloaded("large gathers", large_usage, large_limit, bytes);
}

// Where no large one is in flight the next is tried: it tells the pace anew.
absl::Duration Admission::Expected(uint64_t asked_bytes, bool large) const {
  if (!large || large_usage_.gathers == 0) return absl::ZeroDuration();
  return pace_.Expected(asked_bytes, asked_bytes_ + asked_bytes);
}

void Admission::Took(const Ticket& ticket, absl::Duration time) {
  const Ticket::Holds& holds = ticket.holds_;
  if (!holds.large) return;
  MutexLock lock(&mutex_);
  pace_.Took(holds.asked_bytes, holds.in_flight_bytes, time);
}

void Admission::Paused(const Ticket& ticket) {
  MutexLock lock(&mutex_);
  asked_bytes_ -= ticket.holds_.asked_bytes;
}

void Admission::Resumed(const Ticket& ticket) {
  MutexLock lock(&mutex_);
  asked_bytes_ += ticket.holds_.asked_bytes;
}

void Admission::AddThread() {
  MutexLock lock(&mutex_);
  pace_.AddThread();
}

absl::Status Admission::TooLate(const Usage& large_usage,
                                absl::Duration expected,
                                absl::Duration left) const {
  return WithRetryAfter(
      MakeError(
          ErrorReason::kOverloaded,
          absl::StrCat("with ", large_usage.gathers,
                       " large gathers in flight this one would take ",
                       absl::FormatDuration(expected),
                       ", its caller waits for ", absl::FormatDuration(left))),
      options_.retry_after);
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
  Subtract(admission_->usage_, holds_.bytes);
  if (holds_.large) Subtract(admission_->large_usage_, holds_.bytes);
  admission_->asked_bytes_ -= holds_.asked_bytes;
  admission_ = nullptr;
}

}  // namespace engram
