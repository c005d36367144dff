// What comes back: the part of GatherOperation that takes the ends of calls.
#include <algorithm>
#include <utility>

#include "core/base/backoff.h"
#include "core/base/check.h"
#include "core/wire/error_detail.h"
#include "engram_client/rpc/gather_cache.h"
#include "engram_client/rpc/gather_operation.h"

namespace engram {

void GatherOperation::OnDone(const GatherCallPtr& call,
                             const absl::Status& status) {
  const absl::Time now = SteadyNow();
  // Before the last row is counted, after which the buffers are the caller's.
  if (status.ok() && cache_ != nullptr) call->KeepRows(*cache_, layer_ids_);
  Todo todo;
  {
    MutexLock lock(&mutex_);
    call->ended = true;
    call->transport_call.reset();
    call->planned.charge.Release();
    if (call->kind != CallKind::kHedge) {
      queue_.CallEnded(call->planned.server);
    }
    if (decided_ || call->given_up) {
      in_flight_.Remove(call);
      call->hedges.clear();
    } else if (status.ok()) {
      OnAnswered(call, now, todo);
    } else {
      OnFailed(call, status, now, todo);
    }
    todo.dispatch = !decided_ && (todo.dispatch || !queue_.empty());
  }
  Finish(std::move(todo));
}

void GatherOperation::OnAnswered(const GatherCallPtr& call, absl::Time now,
                                 Todo& todo) {
  ENGRAM_CHECK(call->complete());
  todo.ended.push_back(call->EndedBy(CallOutcome::kAnswered, now));
  CallsInFlight::Outcome outcome = in_flight_.OnAnswered(call);
  CountHedges(HedgeEnd::kLost, outcome.lost_hedges);
  CountHedges(HedgeEnd::kWon, outcome.arrived.size());
  for (const GatherCallPtr& hedge : outcome.useless) {
    GiveUp(*hedge, CallOutcome::kCancelled, now, todo);
  }
  if (outcome.beaten != nullptr) {
    OnBeaten(std::move(outcome), now, todo);
  } else {
    todo.place = std::move(outcome.arrived);
  }
  if (!call->buffered()) CountRows(*call, todo);
}

void GatherOperation::OnBeaten(CallsInFlight::Outcome outcome, absl::Time now,
                               Todo& todo) {
  GatherCall& beaten = *outcome.beaten;
  GiveUp(beaten, CallOutcome::kBeaten, now, todo);
  CountHedges(HedgeEnd::kLost, beaten.kind == CallKind::kHedge ? 1 : 0);
  if (!beaten.started && beaten.kind != CallKind::kHedge) {
    queue_.CallEnded(beaten.planned.server);
  }
  // What stands in line there would be slow likewise.
  const CallFailure slow{beaten.planned.server, absl::UnavailableError("slow"),
                         now};
  for (GatherSegment& segment : queue_.TakeFromLine(
           slow.server, [](const GatherSegment&) { return true; })) {
    NotePassedOver(segment, slow);
    queue_.Add(std::move(segment));
  }
  if (beaten.Shut()) {
    todo.place = std::move(outcome.arrived);
  } else {
    beaten.to_place = std::move(outcome.arrived);
  }
}

CallOutcome GatherOperation::OutcomeOfFailed(const GatherCall& call,
                                             const absl::Status& status,
                                             absl::Time now) const {
  const CallOutcome outcome = OutcomeOf(status);
  // The transport saw the gather's deadline before the timer did.
  const bool in_time = outcome == CallOutcome::kTimedOut &&
                       now >= steady_deadline_ &&
                       now - call.started_at < call.slow_after;
  return in_time ? CallOutcome::kCancelled : outcome;
}

void GatherOperation::OnFailed(const GatherCallPtr& call,
                               const absl::Status& status, absl::Time now,
                               Todo& todo) {
  todo.ended.push_back(call->EndedBy(OutcomeOfFailed(*call, status, now), now));
  todo.ended.back().push_back = PushBackOf(status);
  GatherCall* const primary = call->primary;
  CallsInFlight::Outcome outcome = in_flight_.OnFailed(call);
  CountHedges(HedgeEnd::kFailed, call->kind == CallKind::kHedge ? 1 : 0);
  CountHedges(HedgeEnd::kWon, outcome.arrived.size());
  CallFailure failure{call->planned.server, status, now};
  failure.backoff_factor = RandomBackoffFactor();
  if (primary != nullptr) {
    OnHedgeFailed(*call, *primary, failure);
    todo.dispatch = true;  // sets the alarm
    return;
  }
  const absl::Status described = CallStatus(Names(), *call, status);
  const bool too_late =
      absl::IsDeadlineExceeded(status) && now >= steady_deadline_;
  if (too_late || MayTryAgain(status) == TryAgain::kNever) {
    return DecideEnd(failed_.WithFirst(described), todo);
  }
  failed_.Note(described);
  for (const GatherCallPtr& orphan : outcome.orphans) {
    for (GatherSegment& segment : orphan->planned.segments) {
      NotePassedOver(segment, failure);
    }
  }
  todo.dispatch = true;  // sets the alarm for the orphans
  todo.place = std::move(outcome.arrived);
  if (!TakeBack(std::move(outcome.failed), std::move(failure))) {
    DecideEnd(failed_.WithFirst(described), todo);
  }
}

bool GatherOperation::TakeBack(std::vector<GatherSegment> segments,
                               CallFailure failure) {
  if (segments.empty()) return true;
  const std::vector<PartitionRef> missing = MissingPartitionsOf(failure.status);
  const auto is_missing = [&](const GatherSegment& segment) {
    return std::binary_search(missing.begin(), missing.end(),
                              PartitionRef{layer_ids_[segment.part.layer_index],
                                           segment.part.partition});
  };
  // A list that names nothing of the call says nothing: all of it failed.
  const bool some = std::any_of(segments.begin(), segments.end(), is_missing);
  const auto failed = [&](const GatherSegment& segment) {
    return !some || is_missing(segment);
  };
  if (NeedsToken(failure.status) && !monitor_->MayRetryAtOnce()) {
    failure.pace = RetryPace::kHeld;
  }
  for (GatherSegment& segment : segments) {
    if (failed(segment)) {
      NoteFailure(segment, failure);
      if (segment.setbacks->faults >= kMaxFaults) return false;
    }
    queue_.Add(std::move(segment));
  }
  // What stands in line there would fail likewise.
  for (GatherSegment& segment : queue_.TakeFromLine(failure.server, failed)) {
    if (failed(segment)) NotePassedOver(segment, failure);
    queue_.Add(std::move(segment));
  }
  return true;
}

void GatherOperation::GiveUp(GatherCall& call, CallOutcome outcome,
                             absl::Time now, Todo& todo) {
  call.given_up = true;
  call.planned.charge.Release();
  todo.ended.push_back(call.EndedBy(outcome, now));
  if (call.transport_call != nullptr) {
    todo.cancel.push_back(call.transport_call);
  }
}

void GatherOperation::CountHedges(HedgeEnd end, size_t hedges) {
  if (hedges == 0) return;
  monitor_->metrics().hedges(end).Increment(static_cast<double>(hedges));
}

void GatherOperation::CountRows(const GatherCall& call, Todo& todo) {
  if (decided_) return;
  rows_left_ -= call.planned.rows;
  stats_.bytes_received += call.planned.rows * row_bytes_;
  if (rows_left_ == 0) DecideEnd(absl::OkStatus(), todo);
}

void GatherOperation::OnShut(GatherCall& call) {
  std::vector<GatherCallPtr> calls;
  {
    MutexLock lock(&mutex_);
    calls = std::move(call.to_place);
  }
  PlaceRows(calls);
}

void GatherOperation::PlaceRows(absl::Span<const GatherCallPtr> calls) {
  for (const GatherCallPtr& call : calls) call->PlaceRows();
  Todo todo;
  {
    MutexLock lock(&mutex_);
    for (const GatherCallPtr& call : calls) CountRows(*call, todo);
  }
  Finish(std::move(todo));  // nothing to tell: this thread is still at it
}

}  // namespace engram
