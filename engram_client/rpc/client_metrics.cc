#include "engram_client/rpc/client_metrics.h"

#include <algorithm>
#include <bit>
#include <string>

#include "core/rpc/metric_families.h"

namespace engram {
namespace {

// One counter for each of `values` of a label.
template <size_t kCount>
std::array<prometheus::Counter*, kCount> AddCounters(
    prometheus::Registry& registry, const char* name, const char* help,
    const char* label, const std::array<const char*, kCount>& values) {
  auto& family =
      prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  std::array<prometheus::Counter*, kCount> counters;
  for (size_t i = 0; i < kCount; ++i) {
    counters[i] = &family.Add({{label, values[i]}});
  }
  return counters;
}

// 64 us .. 4 s, each bucket twice the one before.
prometheus::Histogram::BucketBoundaries SecondsBuckets() {
  return DoublingBuckets(64e-6, 5);
}

}  // namespace

ClientMetrics::ClientMetrics(prometheus::Registry& registry)
    : started_(AddCounters<kCallKinds>(
          registry, "engram_client_calls_total",
          "Calls to table servers, by why they were made.", "kind",
          {"first", "retry", "hedge"})),
      ended_(AddCounters<kCallEndCount>(
          registry, "engram_client_calls_ended_total",
          "Calls to table servers, by how they ended.", "outcome",
          {"answered", "refused", "failed", "corrupt", "beaten", "timed_out",
           "cancelled"})),
      hedges_(AddCounters<kHedgeEnds>(registry, "engram_client_hedges_total",
                                      "Hedges, by how they ended.", "end",
                                      {"won", "lost", "failed"})),
      refused_hedges_(AddCounters<kHedgeRefusals>(
          registry, "engram_client_hedges_refused_total",
          "Hedges that could not be sent, by what was used up.", "why",
          {"budget", "buffer"})),
      ejections_(
          AddCounters<kReasons>(registry, "engram_client_ejections_total",
                                "Times that a server was left out, by why.",
                                "reason", {"errors", "latency"})),
      overdue_calls(AddCounter(registry, "engram_client_calls_overdue_total",
                               "Slow calls that could not be hedged at once.")),
      held_retries(
          AddCounter(registry, "engram_client_held_retries_total",
                     "Retries that waited, the budget being used up.")),
      budget_tokens(AddGauge(registry, "engram_client_budget_tokens",
                             "Retries and hedges that may be sent at once.")),
      budget_limit(AddGauge(registry, "engram_client_budget_tokens_limit",
                            "Limit of engram_client_budget_tokens.")),
      failed_looks(
          AddCounter(registry, "engram_client_member_looks_failed_total",
                     "Looks for the servers that there are, without result.")),
      servers(AddGauge(registry, "engram_client_servers",
                       "Servers that are known, connected or not.")),
      servers_connected(AddGauge(registry, "engram_client_servers_connected",
                                 "Of these, servers that are connected and "
                                 "tell what they hold.")),
      servers_limit(AddGauge(registry, "engram_client_servers_limit",
                             "Limit of engram_client_servers.")),
      servers_unwell(AddGauge(registry, "engram_client_servers_ejected",
                              "Servers that are left out or coming back.")),
      gathers_in_flight(AddGauge(registry, "engram_client_gathers_in_flight",
                                 "Gathers that have not ended.")),
      gathers_limit(AddGauge(registry, "engram_client_gathers_in_flight_limit",
                             "Limit of engram_client_gathers_in_flight.")),
      hedge_bytes(AddGauge(registry, "engram_client_hedge_buffer_bytes",
                           "Memory for rows of hedges.")),
      hedge_limit_bytes(AddGauge(registry,
                                 "engram_client_hedge_buffer_limit_bytes",
                                 "Limit of engram_client_hedge_buffer_bytes.")),
      row_cache_hits(AddCounter(registry, "engram_client_row_cache_hits_total",
                                "Rows that the row cache had.")),
      row_cache_misses(AddCounter(registry,
                                  "engram_client_row_cache_misses_total",
                                  "Rows that the row cache did not have.")),
      row_cache_inserts(AddCounter(registry,
                                   "engram_client_row_cache_inserts_total",
                                   "Rows that came into the row cache.")),
      row_cache_evictions(
          AddCounter(registry, "engram_client_row_cache_evictions_total",
                     "Rows that left the row cache for others.")),
      row_cache_dropped(
          AddCounter(registry, "engram_client_row_cache_dropped_total",
                     "Rows left out of the row cache, which was busy.")),
      row_cache_bytes(AddGauge(registry, "engram_client_row_cache_bytes",
                               "Memory of the row cache, index and all.")),
      row_cache_limit_bytes(
          AddGauge(registry, "engram_client_row_cache_limit_bytes",
                   "Limit of engram_client_row_cache_bytes.")) {
  auto& gathers = prometheus::BuildCounter()
                      .Name("engram_client_gathers_total")
                      .Help("Gathers that have ended, by status code.")
                      .Register(registry);
  for (size_t code = 0; code < kStatusCodes; ++code) {
    gathers_[code] = &gathers.Add(
        {{"code",
          absl::StatusCodeToString(static_cast<absl::StatusCode>(code))}});
  }
  auto& seconds = prometheus::BuildHistogram()
                      .Name("engram_client_call_seconds")
                      .Help("Time of calls that were answered.")
                      .Register(registry);
  for (size_t size = 0; size < kSizes; ++size) {
    const std::string rows =
        size + 1 == kSizes ? "+Inf" : std::to_string(uint64_t{1} << 2 * size);
    seconds_[size] = &seconds.Add({{"rows_up_to", rows}}, SecondsBuckets());
  }
}

void ClientMetrics::CallTook(uint64_t rows, absl::Duration time) {
  const size_t size = (std::bit_width(std::max<uint64_t>(rows, 1) - 1) + 1) / 2;
  seconds_[std::min(size, kSizes - 1)]->Observe(absl::ToDoubleSeconds(time));
}

}  // namespace engram
