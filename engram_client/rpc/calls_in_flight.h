#ifndef ENGRAM_ENGRAM_CLIENT_RPC_CALLS_IN_FLIGHT_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_CALLS_IN_FLIGHT_H_

#include <cstddef>
#include <unordered_set>
#include <vector>

#include "absl/time/time.h"
#include "engram_client/rpc/gather_call.h"

namespace engram {

// The calls of one gather that are under way, and which of them race for the
// same rows.
//
// A call that takes long (the primary) gets hedges: calls to other servers that
// together ask for all of its segments, each segment once. The race ends
// - when the primary answers: its hedges are of no use any more;
// - when all of them have answered: the primary is beaten;
// - when the primary fails: its hedges go on as calls like any others, and what
//   no hedge asks for is asked for again.
// Meanwhile a hedge that fails is forgotten, and may be sent again. Not before
// all have answered is one of them used: the primary has what is missing, too.
//
// Changes the racing members of calls. Not synchronised.
class CallsInFlight {
 public:
  // What follows from the end of a call.
  struct Outcome {
    // Calls whose rows lie in their buffers and are to be placed.
    std::vector<GatherCallPtr> arrived;
    // Lost against the arrived, which must wait until it is shut.
    GatherCallPtr beaten;
    // Hedges that are of no use any more, in flight, and with those that have
    // answered.
    std::vector<GatherCallPtr> useless;
    size_t lost_hedges = 0;
    // Hedges in flight that go on without the primary.
    std::vector<GatherCallPtr> orphans;
    // Segments that are to be asked for again.
    std::vector<GatherSegment> failed;
  };

  void Add(GatherCallPtr call) { calls_.insert(std::move(call)); }
  void AddHedge(GatherCall& primary, GatherCallPtr hedge);

  // REQUIRES for both: the call is in flight. It is not, nor are the beaten and
  // the useless, afterwards.
  Outcome OnAnswered(const GatherCallPtr& call);
  Outcome OnFailed(const GatherCallPtr& call);

  // Segments of a call that no hedge asks for.
  static std::vector<GatherSegment> Unhedged(const GatherCall& call);

  // Segments of a call that one of its hedges asks for too: the call's.
  static std::vector<GatherSegment*> SharedSegments(GatherCall& call,
                                                    const GatherCall& hedge);

  // Calls that may be hedged now.
  std::vector<GatherCallPtr> DueForHedge(absl::Time now) const;
  // When there are any.
  absl::Time NextHedge() const;

  const std::unordered_set<GatherCallPtr>& calls() const { return calls_; }
  void Remove(const GatherCallPtr& call) { calls_.erase(call); }

 private:
  Outcome OnHedgeAnswered(const GatherCallPtr& hedge);

  std::unordered_set<GatherCallPtr> calls_;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_CALLS_IN_FLIGHT_H_
