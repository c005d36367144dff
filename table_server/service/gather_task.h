#ifndef ENGRAM_TABLE_SERVER_SERVICE_GATHER_TASK_H_
#define ENGRAM_TABLE_SERVER_SERVICE_GATHER_TASK_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/wire/gather_crc.h"
#include "core/wire/piece_writer.h"
#include "engram/v1/table.pb.h"
#include "table_server/gather/call_guard.h"
#include "table_server/gather/gatherer.h"
#include "table_server/service/admission.h"
#include "table_server/service/reply_buffers.h"
#include "table_server/service/service_context.h"
#include "table_server/service/table_metrics.h"
#include "table_server/tier/row_fetch.h"

namespace engram {

// One admitted gather: what was asked, and how far its rows are.
//
//   Next -> a piece -> Next -> nothing yet -> FetchRows ... done -> Next -> ...
//
// Thread safety: Cancel, CheckAwaited and, with an error, Record may be called
// concurrently with the rest.
class GatherTask {
 public:
  struct Piece {
    ReplyBuffer buffer;
    bool last = false;
  };

  // REQUIRES: `service` outlives the task.
  GatherTask(ServiceContext& service, TableMethod method,
             v1::GatherRequest request, Admission::Ticket ticket,
             absl::Time deadline);

  // Decode-sized: gathered in less time than it takes to queue it.
  bool small() const { return small_; }
  // Of the steps of a gather.
  static ThreadPool::Urgency UrgencyOf(bool small) {
    return small ? ThreadPool::Urgency::kUrgent : ThreadPool::Urgency::kNormal;
  }

  // The next rows of the answer. Nothing: some of them are not at hand, and
  // FetchRows is next. The first call checks all rows. An error ends the task,
  // and so does the last piece. REQUIRES: not ended, nothing is being fetched.
  absl::StatusOr<std::optional<Piece>> Next();
  // Gets the rows that Next found missing. Does not wait: `done` is told on a
  // thread of the tier, perhaps before this returns, and Next gives the piece,
  // or the error, after that. The task stays until then, whoever waits for it.
  void FetchRows(absl::AnyInvocable<void()> done);
  // What goes with the last piece, once it is there.
  ReplyEnd end() const;

  // The gather under way stops early.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  // CANCELLED or DEADLINE_EXCEEDED once nobody waits for the gather.
  absl::Status CheckAwaited() const { return Guard().Check(); }

  // Counts the gather in the metrics. Once, when it is over. The rows of one
  // that failed count as none.
  void Record(absl::StatusCode code) const;

 private:
  CallGuard Guard() const {
    return CallGuard(deadline_, cancelled_, service_.clock);
  }
  absl::StatusOr<std::optional<Piece>> GatherPiece();
  absl::StatusOr<std::optional<Piece>> FetchedPiece();
  Piece End(ReplyBuffer buffer);
  absl::Status CheckOnce();

  ServiceContext& service_;
  const TableMethod method_;
  const v1::GatherRequest request_;
  const std::vector<LayerRowIds> layers_;  // of request_
  const uint64_t row_count_;
  const bool small_;
  const Admission::Ticket ticket_;
  const absl::Time arrived_;
  const absl::Time deadline_;
  std::atomic<bool> cancelled_{false};
  std::optional<CheckedGather> gather_;  // until the task has ended
  std::optional<GatherCrc> crc_;
  uint64_t next_row_ = 0;
  // What is left to fetch of a piece.
  std::optional<ReplyBuffer> incomplete_;
  std::vector<RowFetch> missed_;  // empty and without memory, mostly
  absl::Status fetched_;
  absl::Duration waited_;  // for them, so far
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_GATHER_TASK_H_
