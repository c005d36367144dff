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
  uint32_t faults = 0;  // of these; see MayTryAgain
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

// Whether the same rows may be asked for again, of another server or of this
// one later. Gathers change nothing, so that is always safe.
enum class TryAgain {
  kNever,
  // A fault of one server or of the network: rows that arrived damaged, a
  // request that did, an error that should not be. Others have the rows; where
  // nobody has, a few tries show that it stays.
  kAfterFault,
  // What another server, or time, mends.
  kAlways,
};
TryAgain MayTryAgain(const absl::Status& status);

// Faults of one segment after which its gather fails.
inline constexpr uint32_t kMaxFaults = 4;

// Whether the try after `status` costs more than the first call did: not where
// the server said at once that it is the wrong one to ask.
bool NeedsToken(const absl::Status& status);

// How long the server that failed so asks to be left alone; zero if it does
// not.
absl::Duration PushBackOf(const absl::Status& status);

// How soon the next try may come.
enum class RetryPace {
  kPrompt,  // the first at once, if another server has the rows
  kHeld,    // not before the backoff, wherever it goes
};

// A call that failed, with a status of which MayTryAgain is not kNever.
struct CallFailure {
  ServerIndex server = kNoServer;
  absl::Status status;
  absl::Time now;  // on the steady clock
  RetryPace pace = RetryPace::kPrompt;
  // Of its backoff. One for all segments of the call: else each of them would
  // come back at a moment, and in a call, of its own.
  double backoff_factor = 1;
};

// Notes that the segment's call failed. An overloaded server is obeyed: it is
// not asked before the delay it names, and where two in a row failed, nobody
// before the first of them may be.
void NoteFailure(GatherSegment& segment, const CallFailure& failure);

// Notes that the segment was not sent to the server, which failed others: no
// failure of its own.
void NotePassedOver(GatherSegment& segment, const CallFailure& failure);

// "layer 1 partition 7 and 3 more": the first partition of `parts`, and how
// many others there are.
std::string PartitionsText(absl::Span<const GatherPlan::Part> parts,
                           absl::Span<const LayerId> layer_ids);

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_GATHER_SEGMENTS_H_
