#ifndef ENGRAM_ENGRAM_CLIENT_RPC_GATHER_SEGMENTS_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_GATHER_SEGMENTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "engram_client/plan/gather_plan.h"
#include "engram_client/routing/routing_snapshot.h"

namespace engram {

// What went wrong with rows so far. Both times are of the steady clock.
struct Setbacks {
  uint32_t failures = 0;
  // Nobody is asked before this.
  absl::Time hold_until = absl::InfinitePast();
  // This server failed: others first, and it not before the time.
  ServerIndex avoid = kNoServer;
  absl::Time avoid_until = absl::InfinitePast();
};

// Rows of one partition on their way to an answer. A call carries whole
// segments; one that is too large is cut. In a large table a gather has nearly
// as many segments as rows: so a segment is small.
struct GatherSegment {
  GatherPlan::Part part;
  std::unique_ptr<Setbacks> setbacks;  // null: none so far

  bool IsHeld(absl::Time now) const {
    return setbacks != nullptr && setbacks->hold_until > now;
  }
  ServerIndex avoid() const {
    return setbacks == nullptr ? kNoServer : setbacks->avoid;
  }
  bool IsTooSoonFor(ServerIndex server, absl::Time now) const {
    return setbacks != nullptr && setbacks->avoid == server &&
           setbacks->avoid_until > now;
  }
};

std::vector<GatherPlan::Part> PartsOf(absl::Span<const GatherSegment> segments);

// Cuts the segments of one server into calls of at most `max_rows` rows, and
// of about equal size. Order is kept. REQUIRES: max_rows > 0.
std::vector<std::vector<GatherSegment>> CutIntoCalls(
    std::vector<GatherSegment> segments, uint64_t max_rows);

// Whether the same rows may be answered by another server, or by this one
// later. Gathers change nothing, so asking again is always safe.
bool MayTryAgain(const absl::Status& status);

// Notes that `server` failed the segment with `status`, of which MayTryAgain
// is true. The first failure may go to another server at once; an overloaded
// server is obeyed: it is not asked before the delay it names, and where two
// in a row failed, nobody before the first of them may be.
void NoteFailure(GatherSegment& segment, ServerIndex server,
                 const absl::Status& status, absl::Time now);

// Notes that the segment was not sent to `server`, which failed others with
// `status`: no failure of its own.
void NotePassedOver(GatherSegment& segment, ServerIndex server,
                    const absl::Status& status, absl::Time now);

// "layer 1 partition 7 and 3 more": the first partition of `parts`, and how
// many others there are.
std::string PartitionsText(absl::Span<const GatherPlan::Part> parts,
                           absl::Span<const LayerId> layer_ids);

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_GATHER_SEGMENTS_H_
