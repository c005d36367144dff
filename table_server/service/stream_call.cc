#include "table_server/service/stream_call.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"
#include "table_server/gather/call_guard.h"

namespace engram {
namespace {

absl::Time DeadlineOf(uint64_t timeout_us, absl::Time now,
                      absl::Time stream_deadline) {
  if (timeout_us == 0) return stream_deadline;
  constexpr uint64_t kMaxTimeoutUs = uint64_t{1} << 50;  // 35 years
  return std::min(stream_deadline, now + absl::Microseconds(std::min(
                                             timeout_us, kMaxTimeoutUs)));
}

}  // namespace

StreamCall::StreamCall(ServiceContext& service, v1::GatherStreamRequest request,
                       Admission::Ticket ticket, absl::Time stream_deadline)
    : service_(service),
      request_(std::move(request)),
      layers_(RowIdsOf(request_.gather())),
      ticket_(std::move(ticket)),
      arrived_(service.clock.Now()),
      deadline_(DeadlineOf(request_.timeout_us(), arrived_, stream_deadline)) {}

v1::GatherStreamResponse StreamCall::Next() {
  ENGRAM_CHECK(!ended_);
  v1::GatherStreamResponse response;
  response.set_call_id(id());
  absl::Status status = CheckOnce();
  if (status.ok()) status = FillPiece(*response.mutable_piece());
  if (status.ok()) return response;
  ended_ = true;
  code_ = status.code();
  return StreamError(id(), status);
}

absl::Status StreamCall::CheckOnce() {
  if (gather_.has_value()) return absl::OkStatus();
  // Nothing is done for a call whose caller is gone, not even checks.
  ENGRAM_RETURN_IF_ERROR(CheckAwaited());
  ENGRAM_ASSIGN_OR_RETURN(
      gather_, service_.gatherer.Check(request_.gather().version(), layers_));
  if (request_.gather().want_crc32c()) {
    crc_ = StartCrc(service_.manifest.version(), layers_);
  }
  return absl::OkStatus();
}

absl::Status StreamCall::FillPiece(v1::GatherStreamResponse::Piece& piece) {
  const size_t row_bytes = service_.gatherer.row_bytes();
  const uint64_t piece_rows =
      std::max<uint64_t>(1, service_.limits.piece_bytes / row_bytes);
  const uint64_t rows = std::min(piece_rows, gather_->row_count - next_row_);
  piece.mutable_rows()->resize(rows * row_bytes);
  const absl::Span<std::byte> out(
      reinterpret_cast<std::byte*>(piece.mutable_rows()->data()),
      piece.rows().size());
  ENGRAM_RETURN_IF_ERROR(
      service_.gatherer.Copy(*gather_, next_row_, out, Guard()));
  if (crc_.has_value()) crc_->AddRows(out);
  next_row_ += rows;
  if (next_row_ < gather_->row_count) return absl::OkStatus();
  piece.set_last(true);
  piece.set_version(service_.manifest.version());
  if (crc_.has_value()) piece.set_crc32c(crc_->value());
  ended_ = true;
  return absl::OkStatus();
}

void StreamCall::Record(absl::StatusCode code) const {
  const uint64_t rows = code == absl::StatusCode::kOk ? next_row_ : 0;
  service_.metrics.GatherEnded(TableMethod::kGatherStream, code,
                               service_.clock.Now() - arrived_, rows,
                               rows * service_.gatherer.row_bytes());
}

v1::GatherStreamResponse StreamError(uint64_t call_id,
                                     const absl::Status& status) {
  v1::GatherStreamResponse response;
  response.set_call_id(call_id);
  *response.mutable_error() = ToRpcStatusProto(status);
  return response;
}

}  // namespace engram
