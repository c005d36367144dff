#include "engram_client/rpc/gather_operation.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "engram_client/plan/call_rows.h"
#include "engram_client/rpc/gather_cache.h"

namespace engram {
namespace {

std::vector<LayerId> LayerIds(absl::Span<const LayerGather> layers) {
  std::vector<LayerId> ids;
  for (const LayerGather& layer : layers) ids.push_back(layer.layer);
  return ids;
}

// Indices of the layers in the table. REQUIRES: it has them (CheckGather).
std::vector<uint32_t> TableLayers(const TableInfo& table,
                                  absl::Span<const LayerGather> layers) {
  std::vector<uint32_t> indices;
  for (const LayerGather& layer : layers) {
    uint32_t index = 0;
    while (table.layers[index].layer_id != layer.layer) ++index;
    indices.push_back(index);
  }
  return indices;
}

std::vector<absl::Span<std::byte>> Outs(absl::Span<const LayerGather> layers) {
  std::vector<absl::Span<std::byte>> outs;
  for (const LayerGather& layer : layers) outs.push_back(layer.out);
  return outs;
}

absl::Time OnSteadyClock(absl::Time time) {
  if (time == absl::InfiniteFuture()) return time;
  return SteadyNow() + (time - absl::Now());
}

bool HasFailedRows(const PlannedCall& call) {
  return std::any_of(call.segments.begin(), call.segments.end(),
                     [](const GatherSegment& segment) {
                       return segment.setbacks != nullptr &&
                              segment.setbacks->failures > 0;
                     });
}

}  // namespace

GatherOperation::GatherOperation(const GatherEnvironment& environment,
                                 absl::Span<const LayerGather> layers,
                                 absl::Time deadline, Done done)
    : environment_(environment),
      monitor_(environment.monitor),
      cache_(environment.cache),
      plan_(layers, environment.table->partition_rows),
      layer_ids_(LayerIds(layers)),
      outs_(Outs(layers)),
      row_bytes_(environment.table->row_format.row_bytes()),
      deadline_(deadline),
      steady_deadline_(OnSteadyClock(deadline)),
      end_(environment, this, /*counted=*/true, std::move(done)),
      queue_(environment.max_rows_per_call,
             TableLayers(*environment.table, layers)) {
  stats_.rows = plan_.row_count();
  stats_.unique_rows = plan_.unique_rows().size();
  if (cache_ != nullptr) stats_.cached_rows = cache_->Fill(layers, plan_);
  rows_left_ = plan_.by_partition().size();
  queue_.Add(plan_.parts());
}

GatherOperation::GatherOperation(const GatherEnvironment& environment,
                                 absl::Status why, Done done)
    : environment_(environment),
      monitor_(environment.monitor),
      plan_({}, 1),
      row_bytes_(0),
      deadline_(absl::InfiniteFuture()),
      steady_deadline_(absl::InfiniteFuture()),
      refused_(std::move(why)),
      end_(environment, this, /*counted=*/false, std::move(done)),
      queue_(1, {}) {}

void GatherOperation::Start() {
  if (refused_.ok() && deadline_ <= absl::Now()) return OnDeadline();
  Todo todo;
  {
    MutexLock lock(&mutex_);
    started_ = true;
    if (!refused_.ok() || rows_left_ == 0) DecideEnd(refused_, todo);
  }
  if (!todo.decided) {
    todo = Dispatch();
  } else if (!end_.calls_back()) {
    return Finish(std::move(todo));  // nobody has to be on a client's thread
  }
  FinishElsewhere(todo);
}

void GatherOperation::Cancel() {
  Todo todo;
  {
    MutexLock lock(&mutex_);
    DecideEnd(absl::CancelledError("the gather was cancelled"), todo);
  }
  FinishElsewhere(todo);
}

void GatherOperation::OnDeadline() {
  const std::string problems = environment_.server_problems();
  Todo todo;
  {
    MutexLock lock(&mutex_);
    DecideEnd(DeadlineStatus(Names(), queue_, in_flight_, failed_, problems),
              todo);
  }
  FinishElsewhere(todo);
}

void GatherOperation::OnRoutingChange() {
  {
    MutexLock lock(&mutex_);
    const bool waits = !queue_.empty() || (monitor_->hedging() && !may_hedge_);
    if (!started_ || decided_ || !waits) return;
  }
  Finish(Dispatch());
}

GatherStats GatherOperation::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

// ---- calls ----

GatherOperation::Todo GatherOperation::Dispatch() {
  if (!gate_.Enter()) return {};
  const std::shared_ptr<const RoutingSnapshot> snapshot =
      environment_.routing->snapshot();
  std::vector<GatherCallPtr> calls;
  std::vector<GatherCallPtr> overdue;
  const absl::Time now = SteadyNow();
  {
    MutexLock lock(&mutex_);
    // After the deadline only the end is to come.
    if (!decided_ && now < steady_deadline_) {
      route_at_ = queue_.empty()
                      ? absl::InfiniteFuture()
                      : queue_.Route(*snapshot, *environment_.policy, now);
      may_hedge_ = monitor_->hedging() && snapshot->has_choice();
      // Before the new calls, none of which is slow yet: no row is in two.
      if (may_hedge_) TakeHedges(*snapshot, now, calls, overdue);
      TakeCalls(now, calls);
    }
  }
  for (const GatherCallPtr& call : overdue) {
    monitor_->CallOverdue(call->planned.server, now, call->planned.generation);
  }
  OrderRows(calls);
  for (const GatherCallPtr& call : calls) StartCall(call);
  {
    MutexLock lock(&mutex_);
    SetAlarm();
  }
  return Leave();
}

void GatherOperation::TakeCalls(absl::Time now,
                                std::vector<GatherCallPtr>& calls) {
  for (PlannedCall& planned : queue_.TakeStartable()) {
    const CallKind kind = failed_.any() && HasFailedRows(planned)
                              ? CallKind::kRetry
                              : CallKind::kFirst;
    calls.push_back(MakeCall(kind, std::move(planned), now));
    in_flight_.Add(calls.back());
  }
}

GatherCallPtr GatherOperation::MakeCall(CallKind kind, PlannedCall planned,
                                        absl::Time now) {
  if (planned.server >= servers_asked_.size()) {
    servers_asked_.resize(planned.server + 1);
  }
  if (!servers_asked_[planned.server]) ++stats_.servers;
  servers_asked_[planned.server] = true;
  ++stats_.calls;
  auto call = std::make_shared<GatherCall>(
      std::shared_ptr<GatherCall::Host>(shared_from_this(), this), kind,
      std::move(planned));
  call->started_at = now;
  call->slow_after = monitor_->HedgeDelay(call->planned.rows, now);
  if (monitor_->hedging()) call->hedge_at = HedgeTime(call->slow_after, now);
  return call;
}

void GatherOperation::OrderRows(absl::Span<const GatherCallPtr> calls) const {
  if (calls.empty()) return;
  std::vector<std::vector<GatherPlan::Part>> parts;
  parts.reserve(calls.size());
  for (const GatherCallPtr& call : calls) {
    parts.push_back(PartsOf(call->planned.segments));
  }
  std::vector<CallRows> rows =
      CallRows::Order(plan_, std::vector<absl::Span<const GatherPlan::Part>>(
                                 parts.begin(), parts.end()));
  for (size_t i = 0; i < calls.size(); ++i) {
    calls[i]->SetRows(plan_, outs_, row_bytes_, std::move(rows[i]));
  }
}

void GatherOperation::StartCall(const GatherCallPtr& call) {
  const CallRows& rows = call->rows();
  std::vector<TableTransport::RowRun> runs;
  for (const CallRows::Run& run : rows.runs()) {
    runs.push_back({layer_ids_[run.layer_index],
                    rows.row_ids().subspan(run.begin, run.end - run.begin)});
  }
  TableTransport::GatherRequest request;
  request.version = environment_.table->version;
  request.runs = runs;
  request.reply_bytes = call->planned.rows * row_bytes_;
  request.gather_bytes = plan_.by_partition().size() * row_bytes_;
  request.want_crc32c = environment_.want_crc32c;
  request.deadline = deadline_;
  // Also of one that is given up already: its end has been counted.
  monitor_->CallStarted(call->kind);
  {
    MutexLock lock(&mutex_);
    if (decided_ || call->given_up) {
      in_flight_.Remove(call);
      return;
    }
    call->started = true;
  }
  std::shared_ptr<TransportCall> transport_call;
  if (const TransportSlots::Use transport = environment_.transports->Get(
          call->planned.server, call->planned.generation)) {
    transport_call = transport->Gather(request, call, GatherCall::DoneOf(call));
  } else {
    return FailLater(call);
  }
  {
    MutexLock lock(&mutex_);
    if (call->ended) return;
    call->transport_call = transport_call;
    if (!decided_ && !call->given_up) return;
  }
  transport_call->Cancel();
}

void GatherOperation::FailLater(const GatherCallPtr& call) {
  environment_.timers->Post([done = GatherCall::DoneOf(call)]() mutable {
    done(absl::CancelledError("the server has left"));
  });
}

// ---- the end ----

void GatherOperation::SetAlarm() {
  if (decided_) return;
  absl::Time when = std::min(steady_deadline_, route_at_);
  if (may_hedge_) when = std::min(when, in_flight_.NextHedge());
  if (alarm_.sequence != 0 && alarm_.when <= when) return;
  environment_.timers->Cancel(alarm_);
  alarm_ = {};
  if (when == absl::InfiniteFuture()) return;
  alarm_ = environment_.timers->ScheduleSteady(
      when, [self = shared_from_this()] { self->OnAlarm(); });
}

void GatherOperation::OnAlarm() {
  if (SteadyNow() >= steady_deadline_) return OnDeadline();
  {
    MutexLock lock(&mutex_);
    // Not one that was set meanwhile, which must be cancelled at the end.
    if (alarm_.when <= SteadyNow()) alarm_ = {};
  }
  Finish(Dispatch());
}

void GatherOperation::DecideEnd(absl::Status status, Todo& todo) {
  if (decided_) return;
  decided_ = todo.decided = true;
  result_ = std::move(status);
  const absl::Time now = SteadyNow();
  const bool timed_out = absl::IsDeadlineExceeded(result_);
  for (const GatherCallPtr& call : in_flight_.calls()) {
    const bool slow = timed_out && now - call->started_at >= call->slow_after;
    GiveUp(*call, slow ? CallOutcome::kTimedOut : CallOutcome::kCancelled, now,
           todo);
    // With those that have answered and wait for others.
    CountHedges(HedgeEnd::kLost,
                (call->kind == CallKind::kHedge ? 1 : 0) +
                    std::count_if(call->hedges.begin(), call->hedges.end(),
                                  [](const auto& h) { return h->answered; }));
  }
  queue_.Clear();
  environment_.timers->Cancel(alarm_);
  todo.tell = gate_.Close();
}

GatherOperation::Todo GatherOperation::Leave() {
  Todo todo;
  todo.tell = gate_.Leave();
  return todo;
}

void GatherOperation::ReportAndCancel(const Todo& todo) {
  if (!todo.ended.empty()) {
    const absl::Time now = SteadyNow();
    for (const auto& call : todo.ended) monitor_->CallEnded(call, now);
  }
  for (const auto& call : todo.cancel) call->Cancel();
}

void GatherOperation::Finish(Todo todo) {
  ReportAndCancel(todo);
  if (!todo.place.empty() && gate_.Enter()) {
    PlaceRows(todo.place);
    Finish(Leave());
  }
  if (todo.dispatch) Finish(Dispatch());
  if (todo.tell) end_.Tell(Result());
}

void GatherOperation::FinishElsewhere(const Todo& todo) {
  ReportAndCancel(todo);
  if (todo.tell) end_.TellElsewhere(shared_from_this(), Result());
}

absl::Status GatherOperation::Result() const {
  MutexLock lock(&mutex_);
  return result_;
}

}  // namespace engram
