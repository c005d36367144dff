#ifndef ENGRAM_ENGRAM_CLIENT_RPC_CALL_MONITOR_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_CALL_MONITOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "engram_client/routing/call_times.h"
#include "engram_client/routing/server_health.h"
#include "engram_client/rpc/client_metrics.h"
#include "engram_client/rpc/hedge_buffers.h"
#include "engram_client/rpc/retry_budget.h"
#include "engram_client/table_client.h"

namespace engram {

// How a call with this error ended; not for one that was given up.
CallOutcome OutcomeOf(const absl::Status& status);

// What the calls of all gathers of a client tell about the servers, and what
// follows for the next ones: times, health, budget, metrics. Only composes.
//
// All times are of the steady clock. Thread safety: all methods may be called
// concurrently.
class CallMonitor {
 public:
  struct Options {
    uint64_t max_hedge_buffer_bytes = 0;  // 0: no hedges
    CallTimes::Options times;
    ServerHealth::Options health;
    RetryBudget::Options budget;
    // Null: one of its own.
    std::shared_ptr<prometheus::Registry> registry;
  };
  struct EndedCall {
    ServerIndex server = kNoServer;
    uint64_t rows = 0;
    CallOutcome outcome = CallOutcome::kCancelled;
    absl::Duration time;
    uint64_t generation = 0;   // of the server
    absl::Duration push_back;  // how long the server asks to be left alone
  };

  // The first `server_count` slots have servers, of generation 0.
  CallMonitor(size_t server_count, const Options& options);

  // As ServerHealth. `address` is for the log.
  void AddServer(ServerIndex server, uint64_t generation,
                 absl::string_view address);
  void RemoveServer(ServerIndex server);

  bool hedging() const { return buffers_->max_bytes() > 0; }
  absl::Duration HedgeDelay(uint64_t rows, absl::Time now) {
    return times_.HedgeDelay(rows, now);
  }

  void CallStarted(CallKind kind);
  void CallEnded(const EndedCall& call, absl::Time now);
  // Once for a call that was to be hedged and could not be: its server is not
  // to look well until the call ends.
  void CallOverdue(ServerIndex server, absl::Time now, uint64_t generation = 0);

  // False: the retry is to be held back.
  bool MayRetryAtOnce();
  // Buffers for hedges of these sizes, which may then be sent; or none.
  // `doubt`: about the server that they are sent around. Where it is out they
  // cost no token: there are no more of them than calls under way, as when its
  // connections had broken.
  std::vector<HedgeBuffers::Buffer> MayHedge(absl::Span<const uint64_t> sizes,
                                             ServerHealth::Doubt doubt);

  ServerHealth& health() { return health_; }
  ClientMetrics& metrics() { return metrics_; }
  TableClient::Stats stats() const;

 private:
  bool TrySpend(uint32_t hedges, ServerHealth::Doubt doubt);
  void NoteHealth(const EndedCall& call, double slowness, absl::Time now);
  // For whoever has to find out which server it is.
  void LogLeftOut(ServerIndex server, ServerHealth::Reason why) const;
  void LogWell(ServerIndex server) const;
  std::string AddressOf(ServerIndex server) const;

  const std::shared_ptr<prometheus::Registry> registry_;
  ClientMetrics metrics_;
  const std::shared_ptr<HedgeBuffers> buffers_;
  CallTimes times_;
  ServerHealth health_;
  RetryBudget budget_;

  mutable Mutex mutex_;
  std::vector<std::string> addresses_ ABSL_GUARDED_BY(mutex_);  // by slot
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_CALL_MONITOR_H_
