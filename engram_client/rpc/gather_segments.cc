#include "engram_client/rpc/gather_segments.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/wire/error_detail.h"
#include "engram_client/rpc/backoff.h"

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

void Avoid(Setbacks& setbacks, ServerIndex server, absl::Time until,
           absl::Time now) {
  if (setbacks.avoid != server && setbacks.avoid_until > now) {
    setbacks.hold_until =
        std::max(setbacks.hold_until, std::min(setbacks.avoid_until, until));
    if (setbacks.avoid_until > until) return;
  }
  setbacks.avoid = server;
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

absl::Duration AskedDelay(const absl::Status& status) {
  if (ReasonOf(status) != ErrorReason::kOverloaded) return {};
  return RetryAfterOf(status).value_or(absl::ZeroDuration());
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

bool MayTryAgain(const absl::Status& status) {
  switch (ReasonOf(status)) {
    case ErrorReason::kPartitionNotHere:
    case ErrorReason::kDraining:
    case ErrorReason::kOverloaded:
    case ErrorReason::kNotReady:
    case ErrorReason::kWrongTable:  // replaced; others have the version
      return true;
    case ErrorReason::kRowOutOfRange:
    case ErrorReason::kUnknownLayer:
    case ErrorReason::kTooLarge:
      return false;
    case ErrorReason::kNone:
      break;
  }
  // A server that stops cancels what it still has.
  return absl::IsUnavailable(status) || absl::IsCancelled(status);
}

void NoteFailure(GatherSegment& segment, ServerIndex server,
                 const absl::Status& status, absl::Time now) {
  Setbacks& setbacks = SetbacksOf(segment);
  ++setbacks.failures;
  const absl::Duration delay = BackoffDelay(kRetry, setbacks.failures);
  if (setbacks.failures > 1) {
    setbacks.hold_until = std::max(setbacks.hold_until, now + delay);
  }
  Avoid(setbacks, server, now + std::max(delay, AskedDelay(status)), now);
}

void NotePassedOver(GatherSegment& segment, ServerIndex server,
                    const absl::Status& status, absl::Time now) {
  Setbacks& setbacks = SetbacksOf(segment);
  const absl::Duration delay = BackoffDelay(kRetry, setbacks.failures + 1);
  Avoid(setbacks, server, now + std::max(delay, AskedDelay(status)), now);
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
