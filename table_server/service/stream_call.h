#ifndef ENGRAM_TABLE_SERVER_SERVICE_STREAM_CALL_H_
#define ENGRAM_TABLE_SERVER_SERVICE_STREAM_CALL_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/wire/gather_crc.h"
#include "engram/v1/table.pb.h"
#include "table_server/gather/call_guard.h"
#include "table_server/gather/gatherer.h"
#include "table_server/service/admission.h"
#include "table_server/service/service_context.h"

namespace engram {

// One gather of a stream: what was asked, and how far its answer is.
//
// Thread safety: Cancel, CheckAwaited and, with an error, Record may be called
// concurrently with the rest.
class StreamCall {
 public:
  StreamCall(ServiceContext& service, v1::GatherStreamRequest request,
             Admission::Ticket ticket, absl::Time stream_deadline);

  uint64_t id() const { return request_.call_id(); }

  // The next message of the answer: a piece, or the error that ends it. Takes
  // as long as gathering a piece does. REQUIRES: not ended.
  v1::GatherStreamResponse Next();
  // True once Next returned the last message.
  bool ended() const { return ended_; }

  // The gather under way stops early.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  // CANCELLED or DEADLINE_EXCEEDED once nobody waits for the gather.
  absl::Status CheckAwaited() const { return Guard().Check(); }

  // Counts the call in the metrics. Once, when it is over. The rows of a
  // gather that failed count as none.
  void Record(absl::StatusCode code) const;
  absl::StatusCode code() const { return code_; }

 private:
  CallGuard Guard() const {
    return CallGuard(deadline_, cancelled_, service_.clock);
  }
  absl::Status CheckOnce();
  absl::Status FillPiece(v1::GatherStreamResponse::Piece& piece);

  ServiceContext& service_;
  const v1::GatherStreamRequest request_;
  const std::vector<LayerRowIds> layers_;  // of request_
  const Admission::Ticket ticket_;
  const absl::Time arrived_;
  const absl::Time deadline_;
  std::atomic<bool> cancelled_{false};
  std::optional<CheckedGather> gather_;
  std::optional<GatherCrc> crc_;
  uint64_t next_row_ = 0;
  bool ended_ = false;
  absl::StatusCode code_ = absl::StatusCode::kOk;
};

// The message that ends a gather of a stream with an error.
v1::GatherStreamResponse StreamError(uint64_t call_id,
                                     const absl::Status& status);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_STREAM_CALL_H_
