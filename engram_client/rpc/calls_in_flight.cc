#include "engram_client/rpc/calls_in_flight.h"

#include <algorithm>
#include <utility>

namespace engram {
namespace {

// A copy: both calls have the segment.
GatherSegment CopyOf(const GatherSegment& segment) {
  GatherSegment copy{.part = segment.part};
  if (segment.setbacks != nullptr) {
    copy.setbacks = std::make_unique<Setbacks>(*segment.setbacks);
  }
  return copy;
}

// Of hedges, which have whole segments: where one begins says which it is.
class SegmentSet {
 public:
  explicit SegmentSet(absl::Span<const GatherCall* const> hedges) {
    for (const GatherCall* const hedge : hedges) {
      for (const GatherSegment& segment : hedge->planned.segments) {
        begins_.push_back(segment.part.begin);
      }
    }
    std::sort(begins_.begin(), begins_.end());
  }
  bool Has(const GatherSegment& segment) const {
    return std::binary_search(begins_.begin(), begins_.end(),
                              segment.part.begin);
  }

 private:
  std::vector<uint32_t> begins_;
};

bool MayBeHedged(const GatherCall& call) { return call.primary == nullptr; }

}  // namespace

void CallsInFlight::AddHedge(GatherCall& primary, GatherCallPtr hedge) {
  hedge->primary = &primary;
  primary.hedges.push_back(hedge);
  Add(std::move(hedge));
}

CallsInFlight::Outcome CallsInFlight::OnAnswered(const GatherCallPtr& call) {
  calls_.erase(call);
  call->answered = true;
  if (call->primary != nullptr) return OnHedgeAnswered(call);
  Outcome outcome;
  outcome.lost_hedges = call->hedges.size();
  for (const GatherCallPtr& hedge : std::exchange(call->hedges, {})) {
    hedge->primary = nullptr;
    if (calls_.erase(hedge) > 0) outcome.useless.push_back(hedge);
  }
  if (call->buffered()) outcome.arrived.push_back(call);
  return outcome;
}

CallsInFlight::Outcome CallsInFlight::OnHedgeAnswered(
    const GatherCallPtr& hedge) {
  Outcome outcome;
  GatherCall& primary = *hedge->primary;
  uint64_t rows = 0;
  for (const GatherCallPtr& other : primary.hedges) {
    if (other->answered) rows += other->planned.rows;
  }
  if (rows < primary.planned.rows) return outcome;
  outcome.arrived = std::exchange(primary.hedges, {});
  for (const GatherCallPtr& other : outcome.arrived) other->primary = nullptr;
  const auto beaten =
      std::find_if(calls_.begin(), calls_.end(),
                   [&](const auto& call) { return call.get() == &primary; });
  outcome.beaten = *beaten;
  calls_.erase(beaten);
  return outcome;
}

CallsInFlight::Outcome CallsInFlight::OnFailed(const GatherCallPtr& call) {
  calls_.erase(call);
  Outcome outcome;
  if (call->primary != nullptr) {
    std::erase(call->primary->hedges, call);
    call->primary = nullptr;
    return outcome;
  }
  outcome.failed = Unhedged(*call);
  for (const GatherCallPtr& hedge : std::exchange(call->hedges, {})) {
    hedge->primary = nullptr;
    (hedge->answered ? outcome.arrived : outcome.orphans).push_back(hedge);
  }
  return outcome;
}

std::vector<GatherSegment> CallsInFlight::Unhedged(const GatherCall& call) {
  std::vector<const GatherCall*> hedges;
  for (const GatherCallPtr& hedge : call.hedges) hedges.push_back(hedge.get());
  const SegmentSet hedged(hedges);
  std::vector<GatherSegment> unhedged;
  for (const GatherSegment& segment : call.planned.segments) {
    if (!hedged.Has(segment)) unhedged.push_back(CopyOf(segment));
  }
  return unhedged;
}

std::vector<GatherSegment*> CallsInFlight::SharedSegments(
    GatherCall& call, const GatherCall& hedge) {
  const SegmentSet hedged({&hedge});
  std::vector<GatherSegment*> shared;
  for (GatherSegment& segment : call.planned.segments) {
    if (hedged.Has(segment)) shared.push_back(&segment);
  }
  return shared;
}

std::vector<GatherCallPtr> CallsInFlight::DueForHedge(absl::Time now) const {
  std::vector<GatherCallPtr> due;
  for (const GatherCallPtr& call : calls_) {
    if (MayBeHedged(*call) && call->hedge_at <= now) due.push_back(call);
  }
  return due;
}

absl::Time CallsInFlight::NextHedge() const {
  absl::Time next = absl::InfiniteFuture();
  for (const GatherCallPtr& call : calls_) {
    if (MayBeHedged(*call)) next = std::min(next, call->hedge_at);
  }
  return next;
}

}  // namespace engram
