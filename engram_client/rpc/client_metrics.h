#ifndef ENGRAM_ENGRAM_CLIENT_RPC_CLIENT_METRICS_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_CLIENT_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engram_client/routing/server_health.h"

namespace engram {

enum class CallKind {
  kFirst,
  kRetry,  // with rows that have been asked for before
  kHedge,
};

enum class HedgeEnd {
  kWon,     // its rows were taken
  kLost,    // the call that it was for answered first, or all was given up
  kFailed,  // with an error
};

enum class HedgeRefusal {
  kNoBudget,
  kNoBuffer,
};

// The engram_client_* metrics of one client, all there (as 0) from the start.
// Every bound has its limit beside its gauge.
//
// Thread safety: all members may be used concurrently.
class ClientMetrics {
 public:
  static constexpr size_t kCallKinds = 3;
  static constexpr size_t kHedgeEnds = 3;
  static constexpr size_t kHedgeRefusals = 2;
  static constexpr size_t kReasons = 2;
  static constexpr size_t kStatusCodes = 17;  // OK .. UNAUTHENTICATED
  // Calls of up to 1, 4, 16, ... rows have a histogram; the last has the rest.
  static constexpr size_t kSizes = 9;

  // `registry` must outlive this.
  explicit ClientMetrics(prometheus::Registry& registry);

  void CallTook(uint64_t rows, absl::Duration time);

  prometheus::Counter& started(CallKind kind) const {
    return *started_[static_cast<size_t>(kind)];
  }
  prometheus::Counter& ended(CallOutcome outcome) const {
    return *ended_[static_cast<size_t>(outcome)];
  }
  prometheus::Counter& hedges(HedgeEnd end) const {
    return *hedges_[static_cast<size_t>(end)];
  }
  prometheus::Counter& hedges(HedgeRefusal why) const {
    return *refused_hedges_[static_cast<size_t>(why)];
  }
  prometheus::Counter& ejections(ServerHealth::Reason reason) const {
    return *ejections_[static_cast<size_t>(reason)];
  }
  prometheus::Counter& gathers(absl::StatusCode code) const {
    const auto index = static_cast<size_t>(code);
    return *gathers_[index < kStatusCodes ? index : 2];  // UNKNOWN
  }

 private:
  std::array<prometheus::Counter*, kCallKinds> started_;
  std::array<prometheus::Counter*, kCallEndCount> ended_;
  std::array<prometheus::Counter*, kHedgeEnds> hedges_;
  std::array<prometheus::Counter*, kHedgeRefusals> refused_hedges_;
  std::array<prometheus::Counter*, kReasons> ejections_;
  std::array<prometheus::Counter*, kStatusCodes> gathers_;
  std::array<prometheus::Histogram*, kSizes> seconds_;

 public:
  prometheus::Counter& overdue_calls;
  prometheus::Counter& held_retries;
  prometheus::Gauge& budget_tokens;
  prometheus::Gauge& budget_limit;
  prometheus::Counter& failed_looks;
  prometheus::Gauge& servers;
  prometheus::Gauge& servers_connected;
  prometheus::Gauge& servers_limit;
  prometheus::Gauge& servers_unwell;
  prometheus::Gauge& gathers_in_flight;
  prometheus::Gauge& gathers_limit;
  prometheus::Gauge& hedge_bytes;
  prometheus::Gauge& hedge_limit_bytes;
  prometheus::Counter& row_cache_hits;
  prometheus::Counter& row_cache_misses;
  prometheus::Counter& row_cache_inserts;
  prometheus::Counter& row_cache_evictions;
  prometheus::Counter& row_cache_dropped;
  prometheus::Gauge& row_cache_bytes;
  prometheus::Gauge& row_cache_limit_bytes;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_CLIENT_METRICS_H_
