#include "engram_client/rpc/call_monitor.h"

#include <spdlog/spdlog.h>

#include <numeric>
#include <optional>

#include "core/rpc/metric_families.h"
#include "core/wire/error_detail.h"

namespace engram {

CallOutcome OutcomeOf(const absl::Status& status) {
  switch (ReasonOf(status)) {
    case ErrorReason::kNone:
      break;
    case ErrorReason::kRowOutOfRange:
    case ErrorReason::kUnknownLayer:
      return CallOutcome::kFailed;
    default:
      return CallOutcome::kRefused;
  }
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return CallOutcome::kAnswered;
    case absl::StatusCode::kDataLoss:
      return CallOutcome::kCorrupt;
    case absl::StatusCode::kDeadlineExceeded:
      return CallOutcome::kTimedOut;
    case absl::StatusCode::kCancelled:  // the server stops
    case absl::StatusCode::kResourceExhausted:
      return CallOutcome::kRefused;
    default:
      return CallOutcome::kFailed;
  }
}

CallMonitor::CallMonitor(size_t server_count, const Options& options)
    : registry_(OrOwnRegistry(options.registry)),
      metrics_(*registry_),
      // Buffers may outlive the monitor.
      buffers_(std::make_shared<HedgeBuffers>(
          options.max_hedge_buffer_bytes,
          std::shared_ptr<prometheus::Gauge>(registry_,
                                             &metrics_.hedge_bytes))),
      times_(options.times),
      health_(server_count, options.health),
      budget_(options.budget) {
  metrics_.budget_limit.Set(budget_.burst());
  metrics_.budget_tokens.Set(budget_.tokens());
  metrics_.hedge_limit_bytes.Set(static_cast<double>(buffers_->max_bytes()));
}

void CallMonitor::AddServer(ServerIndex server, uint64_t generation,
                            absl::string_view address) {
  {
    MutexLock lock(&mutex_);
    if (addresses_.size() <= server) addresses_.resize(server + 1);
    addresses_[server] = std::string(address);
  }
  health_.Add(server, generation);
  metrics_.servers.Increment();
}

void CallMonitor::RemoveServer(ServerIndex server) {
  health_.Remove(server);
  metrics_.servers.Decrement();
  metrics_.servers_unwell.Set(static_cast<double>(health_.unwell()));
}

void CallMonitor::CallStarted(CallKind kind) {
  metrics_.started(kind).Increment();
  if (kind != CallKind::kFirst) return;
  const uint32_t before = budget_.tokens();
  budget_.OnFirstCall();
  const uint32_t after = budget_.tokens();
  if (after != before) metrics_.budget_tokens.Set(after);
}

void CallMonitor::CallEnded(const EndedCall& call, absl::Time now) {
  metrics_.ended(call.outcome).Increment();
  if (call.push_back > absl::ZeroDuration()) {
    health_.PushedBack(call.server, call.push_back, now, call.generation);
  }
  const bool answered = call.outcome == CallOutcome::kAnswered;
  if (answered) metrics_.CallTook(call.rows, call.time);
  const absl::Duration usual = times_.Usual(call.rows, now);
  const double slowness =
      usual > absl::ZeroDuration() ? absl::FDivDuration(call.time, usual) : 0;
  // A beaten call takes at least as long as it ran. What servers take that are
  // not well is not what a call may take.
  if ((answered || call.outcome == CallOutcome::kBeaten) &&
      health_.IsWell(call.server)) {
    times_.Record(call.rows, call.time, now);
  }
  NoteHealth(call, slowness, now);
}

void CallMonitor::CallOverdue(ServerIndex server, absl::Time now,
                              uint64_t generation) {
  metrics_.overdue_calls.Increment();
  NoteHealth({.server = server,
              .outcome = CallOutcome::kOverdue,
              .generation = generation},
             /*slowness=*/0, now);
}

void CallMonitor::NoteHealth(const EndedCall& call, double slowness,
                             absl::Time now) {
  const bool all_well = health_.all_well();
  const bool was_well = all_well || health_.IsWell(call.server);
  const std::optional<ServerHealth::Reason> ejected = health_.CallEnded(
      call.server, call.outcome, slowness, now, call.generation);
  if (ejected.has_value()) {
    metrics_.ejections(*ejected).Increment();
    LogLeftOut(call.server, *ejected);
  }
  if (!was_well && health_.IsWell(call.server)) LogWell(call.server);
  if (!all_well || ejected.has_value()) {
    metrics_.servers_unwell.Set(static_cast<double>(health_.unwell()));
  }
}

std::string CallMonitor::AddressOf(ServerIndex server) const {
  MutexLock lock(&mutex_);
  return server < addresses_.size() ? addresses_[server] : "";
}

void CallMonitor::LogLeftOut(ServerIndex server,
                             ServerHealth::Reason why) const {
  spdlog::warn("table server at {}: left out where others can answer: {}",
               AddressOf(server),
               why == ServerHealth::Reason::kErrors
                   ? "too many of its calls fail"
                   : "it is far slower than the others");
}

void CallMonitor::LogWell(ServerIndex server) const {
  spdlog::info("table server at {}: well again", AddressOf(server));
}

bool CallMonitor::MayRetryAtOnce() {
  const bool may = budget_.TrySpend(1);
  if (!may) metrics_.held_retries.Increment();
  metrics_.budget_tokens.Set(budget_.tokens());
  return may;
}

std::vector<HedgeBuffers::Buffer> CallMonitor::MayHedge(
    absl::Span<const uint64_t> sizes, ServerHealth::Doubt doubt) {
  std::vector<HedgeBuffers::Buffer> buffers;
  for (const uint64_t size : sizes) {
    buffers.push_back(buffers_->Take(size));
    if (buffers.back()) continue;
    metrics_.hedges(HedgeRefusal::kNoBuffer).Increment();
    return {};
  }
  if (!TrySpend(static_cast<uint32_t>(sizes.size()), doubt)) {
    metrics_.hedges(HedgeRefusal::kNoBudget).Increment();
    return {};
  }
  metrics_.budget_tokens.Set(budget_.tokens());
  return buffers;
}

bool CallMonitor::TrySpend(uint32_t hedges, ServerHealth::Doubt doubt) {
  switch (doubt) {
    case ServerHealth::Doubt::kNone:
      return budget_.TrySpendUpperHalf(hedges);
    case ServerHealth::Doubt::kSuspect:
      return budget_.TrySpend(hedges);
    case ServerHealth::Doubt::kOut:
      return true;
  }
  return false;
}

TableClient::Stats CallMonitor::stats() const {
  TableClient::Stats stats;
  stats.first_calls = CountOf(metrics_.started(CallKind::kFirst));
  stats.retries = CountOf(metrics_.started(CallKind::kRetry));
  stats.held_retries = CountOf(metrics_.held_retries);
  stats.hedges = CountOf(metrics_.started(CallKind::kHedge));
  stats.hedges_won = CountOf(metrics_.hedges(HedgeEnd::kWon));
  stats.refused_hedges = CountOf(metrics_.hedges(HedgeRefusal::kNoBudget)) +
                         CountOf(metrics_.hedges(HedgeRefusal::kNoBuffer));
  stats.failed_calls = CountOf(metrics_.ended(CallOutcome::kFailed));
  stats.corrupt_replies = CountOf(metrics_.ended(CallOutcome::kCorrupt));
  stats.ejections = CountOf(metrics_.ejections(ServerHealth::Reason::kErrors)) +
                    CountOf(metrics_.ejections(ServerHealth::Reason::kLatency));
  stats.servers_ejected = health_.unwell();
  return stats;
}

}  // namespace engram
