#include "engram_client/rpc/gather_segments.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/wire/error_detail.h"
#include "engram_client/rpc/backoff.h"

namespace engram {
namespace {

constexpr BackoffOptions kRetry = {.first = absl::Milliseconds(10),
                                   .longest = absl::Milliseconds(500)};

void Avoid(GatherSegment& segment, ServerIndex server, absl::Time until,
           absl::Time now) {
  if (segment.avoid != server && segment.avoid_until > now) {
    segment.hold_until =
        std::max(segment.hold_until, std::min(segment.avoid_until, until));
    if (segment.avoid_until > until) return;
  }
  segment.avoid = server;
  segment.avoid_until = until;
}

absl::Duration AskedDelay(const absl::Status& status) {
  if (ReasonOf(status) != ErrorReason::kOverloaded) return {};
  return RetryAfterOf(status).value_or(absl::ZeroDuration());
}

}  // namespace

std::vector<std::vector<GatherSegment>> CutIntoCalls(
    absl::Span<const GatherSegment> segments, uint64_t max_rows) {
  ENGRAM_CHECK(max_rows > 0);
  uint64_t total = 0;
  for (const GatherSegment& segment : segments) total += segment.part.rows();
  std::vector<std::vector<GatherSegment>> calls;
  if (total == 0) return calls;
  const uint64_t call_count = (total - 1) / max_rows + 1;
  const uint64_t call_rows = (total - 1) / call_count + 1;
  calls.reserve(call_count);

  uint64_t room = 0;
  for (GatherSegment rest : segments) {
    while (rest.part.rows() > 0) {
      if (room == 0) {
        calls.emplace_back();
        room = call_rows;
      }
      GatherSegment piece = rest;
      const auto take =
          static_cast<uint32_t>(std::min<uint64_t>(room, rest.part.rows()));
      piece.part.end = piece.part.begin + take;
      rest.part.begin += take;
      room -= take;
      calls.back().push_back(piece);
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
  ++segment.failures;
  const absl::Duration delay = BackoffDelay(kRetry, segment.failures);
  if (segment.failures > 1) {
    segment.hold_until = std::max(segment.hold_until, now + delay);
  }
  Avoid(segment, server, now + std::max(delay, AskedDelay(status)), now);
}

void NotePassedOver(GatherSegment& segment, ServerIndex server,
                    const absl::Status& status, absl::Time now) {
  const absl::Duration delay = BackoffDelay(kRetry, segment.failures + 1);
  Avoid(segment, server, now + std::max(delay, AskedDelay(status)), now);
}

std::string PartitionsText(absl::Span<const GatherSegment> segments,
                           absl::Span<const LayerId> layer_ids) {
  std::vector<PartitionRef> refs;
  for (const GatherSegment& segment : segments) {
    refs.push_back(
        {layer_ids[segment.part.layer_index], segment.part.partition});
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
