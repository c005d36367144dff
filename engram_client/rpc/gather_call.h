#ifndef ENGRAM_ENGRAM_CLIENT_RPC_GATHER_CALL_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_GATHER_CALL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engram_client/plan/call_rows.h"
#include "engram_client/plan/row_scatter.h"
#include "engram_client/rpc/call_monitor.h"
#include "engram_client/rpc/gate.h"
#include "engram_client/rpc/gather_queue.h"
#include "engram_client/rpc/hedge_buffers.h"
#include "engram_client/rpc/table_transport.h"

namespace engram {

class GatherCache;
class GatherCall;
using GatherCallPtr = std::shared_ptr<GatherCall>;

// One call of a gather, and the sink of its reply: straight to the caller's
// buffers or, for a hedge, to one of its own, from where the rows are copied
// once it is known that nobody else writes them.
class GatherCall final : public RowSink {
 public:
  // The gather.
  class Host {
   public:
    virtual void OnDone(const GatherCallPtr& call,
                        const absl::Status& status) = 0;
    // Around what writes to them; false once the gather's end is decided.
    [[nodiscard]] virtual bool EnterBuffers() = 0;
    virtual void LeaveBuffers() = 0;
    // `call` was shut while it wrote, and does so no more. In the buffers.
    virtual void OnShut(GatherCall& call) = 0;

   protected:
    ~Host() = default;
  };

  GatherCall(std::shared_ptr<Host> host, CallKind kind, PlannedCall planned)
      : kind(kind), planned(std::move(planned)), host_(std::move(host)) {}

  // Rows go to `buffer`, of just their size. Before the call starts.
  void WriteTo(HedgeBuffers::Buffer buffer) {
    buffer_.emplace(std::move(buffer));
  }
  // Before the call starts, once. `plan` and `outs` outlive the call's writes.
  void SetRows(const GatherPlan& plan,
               absl::Span<const absl::Span<std::byte>> outs, size_t row_bytes,
               CallRows rows);
  const CallRows& rows() const { return *rows_; }

  void Write(uint64_t offset_bytes, absl::Span<const std::byte> bytes) override;

  // All rows were written.
  bool complete() const {
    return written_bytes_.load(std::memory_order_relaxed) ==
           scatter_->size_bytes();
  }
  // The rows are in the buffer, not yet where they belong.
  bool buffered() const { return buffer_.has_value(); }
  // Gives the rows to `cache`, unless they may be the caller's again by now.
  // REQUIRES: the call has ended well.
  void KeepRows(GatherCache& cache, absl::Span<const LayerId> layer_ids);
  // Copies them there. REQUIRES: complete, buffered, in the host's buffers.
  void PlaceRows() const;

  // Nothing is written to the caller's buffers any more. False: something is
  // just now; OnShut says when it has ended. Once.
  [[nodiscard]] bool Shut() { return gate_.Close(); }

  CallMonitor::EndedCall EndedBy(CallOutcome outcome, absl::Time now) const {
    return {.server = planned.server,
            .rows = planned.rows,
            .outcome = outcome,
            .time = now - started_at,
            .generation = planned.generation};
  }

  // What the transport tells the end.
  static TableTransport::StatusDone DoneOf(GatherCallPtr call) {
    return [call = std::move(call)](const absl::Status& status) {
      call->host_->OnDone(call, status);
    };
  }

  const CallKind kind;
  // Guarded by the gather's mutex, as all that follows: a call that failed
  // gives its segments back.
  PlannedCall planned;
  std::shared_ptr<TransportCall> transport_call;  // null before it has started
  absl::Time started_at;                          // on the steady clock
  absl::Duration slow_after = absl::InfiniteDuration();
  absl::Time hedge_at = absl::InfiniteFuture();
  bool started = false;   // its end will be told
  bool given_up = false;  // nobody waits for it
  bool overdue = false;   // and its server's health knows
  bool ended = false;
  bool answered = false;  // and complete
  // The race with its hedges; see CallsInFlight.
  GatherCall* primary = nullptr;
  std::vector<GatherCallPtr> hedges;
  // What OnShut is to place.
  std::vector<GatherCallPtr> to_place;

 private:
  void WriteToBuffer(uint64_t offset_bytes, absl::Span<const std::byte> bytes);
  void CountWritten(size_t bytes) {
    written_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }

  const std::shared_ptr<Host> host_;
  Gate gate_;  // around writes to the caller's buffers
  std::optional<CallRows> rows_;
  std::optional<RowScatter> scatter_;
  std::optional<HedgeBuffers::Buffer> buffer_;
  std::atomic<uint64_t> written_bytes_{0};
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_GATHER_CALL_H_
