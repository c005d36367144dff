#include "engram_client/rpc/gather_segments.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/backoff.h"
#include "core/base/check.h"
#include "core/wire/error_detail.h"

namespace engram {
namespace {

static_assert(sizeof(GatherSegment) <= 24);

constexpr BackoffOptions kRetry = {.first = absl::Milliseconds(10),
                                   .longest = absl::Milliseconds(500)};

Setbacks& SetbacksOf(GatherSegment& segment) {
  if (segment.setbacks == nullptr) {
    segment.setbacks = std::make_unique<Setbacks>();
  }
  return *segment.setbacks;
}

void Avoid(Setbacks& setbacks, const CallFailure& failure,
           absl::Duration delay) {
  const absl::Time until =
      failure.now + std::max(delay, PushBackOf(failure.status));
  if (setbacks.avoid != failure.server && setbacks.avoid_until > failure.now) {
    setbacks.hold_until =
        std::max(setbacks.hold_until, std::min(setbacks.avoid_until, until));
    if (setbacks.avoid_until > until) return;
  }
  setbacks.avoid = failure.server;
  setbacks.avoid_until = until;
}

// The first `rows`, which may be all; the others stay.
GatherSegment CutOff(GatherSegment& segment, uint32_t rows) {
  GatherSegment first{.part = segment.part};
  if (segment.setbacks != nullptr) {
    first.setbacks = std::make_unique<Setbacks>(*segment.setbacks);
  }
  first.part.end = first.part.begin + rows;
  segment.part.begin += rows;
  return first;
}

}  // namespace

std::vector<GatherPlan::Part> PartsOf(
    absl::Span<const GatherSegment> segments) {
  std::vector<GatherPlan::Part> parts;
  parts.reserve(segments.size());
  for (const GatherSegment& segment : segments) parts.push_back(segment.part);
  return parts;
}

std::vector<std::vector<GatherSegment>> CutIntoCalls(
    std::vector<GatherSegment> segments, uint64_t max_rows) {
  ENGRAM_CHECK(max_rows > 0);
  uint64_t total = 0;
  for (const GatherSegment& segment : segments) total += segment.part.rows();
  std::vector<std::vector<GatherSegment>> calls;
  if (total == 0) return calls;
  if (total <= max_rows) {
    calls.push_back(std::move(segments));
    return calls;
  }
  const uint64_t call_count = (total - 1) / max_rows + 1;
  const uint64_t call_rows = (total - 1) / call_count + 1;
  calls.reserve(call_count);

  uint64_t room = 0;
  for (GatherSegment& rest : segments) {
    while (rest.part.rows() > 0) {
      if (room == 0) {
        calls.emplace_back().reserve(segments.size() / call_count + 2);
        room = call_rows;
      }
      const auto take =
          static_cast<uint32_t>(std::min<uint64_t>(room, rest.part.rows()));
      calls.back().push_back(CutOff(rest, take));
      room -= take;
    }
  }
  return calls;
}

TryAgain MayTryAgain(const absl::Status& status) {
  switch (ReasonOf(status)) {
    case ErrorReason::kPartitionNotHere:
    case ErrorReason::kDraining:
    case ErrorReason::kOverloaded:
    case ErrorReason::kNotReady:
    case ErrorReason::kWrongTable:  // replaced; others have the version
      return TryAgain::kAlways;
    case ErrorReason::kRowOutOfRange:
    case ErrorReason::kUnknownLayer:
      return TryAgain::kAfterFault;  // the rows were checked before
    case ErrorReason::kTooLarge:
      return TryAgain::kNever;
    case ErrorReason::kNone:
      break;
  }
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:  // a server that stops
      return TryAgain::kAlways;
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kDeadlineExceeded:  // by a clock that was set
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
      return TryAgain::kAfterFault;
    default:
      return TryAgain::kNever;
  }
}

bool NeedsToken(const absl::Status& status) {
  const ErrorReason reason = ReasonOf(status);
  return reason != ErrorReason::kPartitionNotHere &&
         reason != ErrorReason::kDraining;
}

absl::Duration PushBackOf(const absl::Status& status) {
  if (ReasonOf(status) != ErrorReason::kOverloaded) return {};
  return RetryAfterOf(status).value_or(absl::ZeroDuration());
}

void NoteFailure(GatherSegment& segment, const CallFailure& failure) {
  Setbacks& setbacks = SetbacksOf(segment);
  ++setbacks.failures;
  if (MayTryAgain(failure.status) == TryAgain::kAfterFault) ++setbacks.faults;
  const absl::Duration delay =
      BackoffDelay(kRetry, setbacks.failures, failure.backoff_factor);
  if (setbacks.failures > 1 || failure.pace == RetryPace::kHeld) {
    setbacks.hold_until = std::max(setbacks.hold_until, failure.now + delay);
  }
  Avoid(setbacks, failure, delay);
}

void NotePassedOver(GatherSegment& segment, const CallFailure& failure) {
  Setbacks& setbacks = SetbacksOf(segment);
  Avoid(setbacks, failure,
        BackoffDelay(kRetry, setbacks.failures + 1, failure.backoff_factor));
}

std::string PartitionsText(absl::Span<const GatherPlan::Part> parts,
                           absl::Span<const LayerId> layer_ids) {
  std::vector<PartitionRef> refs;
  refs.reserve(parts.size());
  for (const GatherPlan::Part& part : parts) {
    refs.push_back({layer_ids[part.layer_index], part.partition});
  }
  std::sort(refs.begin(), refs.end());
  refs.erase(std::unique(refs.begin(), refs.end()), refs.end());
  if (refs.empty()) return "no partition";
  std::string text = absl::StrCat("layer ", ToInt(refs[0].layer), " partition ",
                                  ToInt(refs[0].partition));
  if (refs.size() > 1) {
    absl::StrAppend(&text, " and ", refs.size() - 1, " more");
  }
  return text;
}

}  // namespace engram
