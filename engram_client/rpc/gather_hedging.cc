// The part of GatherOperation that sends calls that take long elsewhere too.
#include <algorithm>
#include <utility>

#include "engram_client/rpc/gather_operation.h"

namespace engram {
namespace {

constexpr absl::Duration kShortestWait = absl::Milliseconds(1);

}  // namespace

absl::Time GatherOperation::HedgeTime(absl::Duration wait,
                                      absl::Time now) const {
  return now +
         std::max(kShortestWait, std::min(wait, (steady_deadline_ - now) / 2));
}

void GatherOperation::TakeHedges(const RoutingSnapshot& snapshot,
                                 absl::Time now,
                                 std::vector<GatherCallPtr>& calls,
                                 std::vector<GatherCallPtr>& overdue) {
  for (const GatherCallPtr& slow : in_flight_.DueForHedge(now)) {
    std::vector<GatherCallPtr> hedges = HedgesFor(*slow, snapshot, now);
    if (hedges.empty()) {
      slow->hedge_at = HedgeTime(now - slow->started_at, now);
      if (!std::exchange(slow->overdue, true)) overdue.push_back(slow);
    } else {
      slow->hedge_at = absl::InfiniteFuture();  // not while all of it is hedged
    }
    for (GatherCallPtr& hedge : hedges) {
      ++stats_.hedges;
      in_flight_.AddHedge(*slow, hedge);
      calls.push_back(std::move(hedge));
    }
  }
}

std::vector<GatherCallPtr> GatherOperation::HedgesFor(
    const GatherCall& slow, const RoutingSnapshot& snapshot, absl::Time now) {
  const ServerHealth& health = monitor_->health();
  std::vector<PlannedCall> planned =
      queue_.PlanAround(slow.planned.server, CallsInFlight::Unhedged(slow),
                        snapshot, *environment_.policy, now);
  std::vector<uint64_t> sizes;
  for (const PlannedCall& call : planned) {
    if (health.HasPushedBack(call.server, now)) return {};
    // Only when waiting longer did not help: both may be bad.
    if (!slow.overdue && health.IsOut(call.server, now)) return {};
    sizes.push_back(call.rows * row_bytes_);
  }
  if (sizes.empty()) return {};
  std::vector<HedgeBuffers::Buffer> buffers =
      monitor_->MayHedge(sizes, health.DoubtOf(slow.planned.server, now));
  std::vector<GatherCallPtr> hedges;
  for (size_t i = 0; i < buffers.size(); ++i) {
    hedges.push_back(MakeCall(CallKind::kHedge, std::move(planned[i]), now));
    hedges.back()->WriteTo(std::move(buffers[i]));
  }
  return hedges;
}

void GatherOperation::OnHedgeFailed(const GatherCall& hedge,
                                    GatherCall& primary,
                                    const CallFailure& failure) {
  primary.hedge_at = HedgeTime(primary.slow_after, failure.now);
  for (GatherSegment* const segment :
       CallsInFlight::SharedSegments(primary, hedge)) {
    NotePassedOver(*segment, failure);
  }
}

}  // namespace engram
