#include "engram_client/rpc/lane_call.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace engram {
namespace {

grpc::Slice SerializeGather(const TableTransport::GatherRequest& request) {
  grpc::Slice slice(
      GatherFieldSize(request.version, request.runs, request.want_crc32c));
  WriteGatherField(
      request.version, request.runs, request.want_crc32c,
      {reinterpret_cast<std::byte*>(const_cast<uint8_t*>(slice.begin())),
       slice.size()});
  return slice;
}

GatherCrc CrcOfRequest(const TableTransport::GatherRequest& request) {
  GatherCrc crc(request.version);
  std::vector<RowId> ids;
  for (size_t i = 0; i < request.runs.size(); ++i) {
    const RowRun& run = request.runs[i];
    ids.insert(ids.end(), run.row_ids.begin(), run.row_ids.end());
    if (i + 1 < request.runs.size() && request.runs[i + 1].layer == run.layer) {
      continue;
    }
    crc.AddLayer(run.layer, ids);
    ids.clear();
  }
  return crc;
}

// 0 would be no limit.
uint64_t TimeoutUs(absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return 0;
  return static_cast<uint64_t>(
      std::max<int64_t>(1, absl::ToInt64Microseconds(deadline - absl::Now())));
}

}  // namespace

LaneCall::LaneCall(const TableTransport::GatherRequest& request,
                   std::shared_ptr<RowSink> sink,
                   TableTransport::StatusDone done,
                   std::atomic<uint64_t>* lane_load)
    : version_(request.version),
      reply_bytes_(request.reply_bytes),
      deadline_(request.deadline),
      gather_(SerializeGather(request)),
      lane_load_(lane_load),
      sink_(std::move(sink)),
      done_(std::move(done)) {
  if (request.want_crc32c) crc_ = CrcOfRequest(request);
  lane_load_->fetch_add(reply_bytes_, std::memory_order_relaxed);
}

grpc::ByteBuffer LaneCall::Request(uint64_t id) const {
  const ShortMessage head = GatherHead(id, TimeoutUs(deadline_));
  const grpc::Slice slices[] = {grpc::Slice(head.bytes.data(), head.size),
                                gather_};
  return grpc::ByteBuffer(slices, 2);
}

absl::Status LaneCall::Reserve(const PieceMessage& piece) {
  reserved_bytes_ += piece.rows_bytes;
  const bool wrong_size = piece.last ? reserved_bytes_ != reply_bytes_
                                     : reserved_bytes_ > reply_bytes_;
  if (piece.last && piece.version != version_) {
    return absl::DataLossError(absl::StrCat(
        "reply is of table '", piece.version, "', not ", version_));
  }
  if (wrong_size) {
    return absl::DataLossError(absl::StrCat(
        "reply has ", reserved_bytes_, piece.last ? "" : " or more",
        " bytes of rows, not ", reply_bytes_));
  }
  complete = piece.last;
  return absl::OkStatus();
}

void LaneCall::Copy(const PieceMessage& piece, uint64_t offset_bytes) {
  for (const absl::Span<const std::byte> rows : piece.rows) {
    sink_->Write(offset_bytes, rows);
    offset_bytes += rows.size();
  }
}

absl::Status LaneCall::CopyAndSum(const PieceMessage& piece,
                                  uint64_t offset_bytes) {
  for (const absl::Span<const std::byte> rows : piece.rows) {
    crc_->AddRows(rows);
  }
  if (piece.last && crc_->value() != piece.crc32c) {
    return absl::DataLossError(
        absl::StrCat("CRC32C of the reply is ", absl::Hex(crc_->value()),
                     ", the server sent ", absl::Hex(piece.crc32c)));
  }
  Copy(piece, offset_bytes);
  return absl::OkStatus();
}

void LaneCall::Tell() {
  lane_load_->fetch_sub(reply_bytes_, std::memory_order_relaxed);
  sink_.reset();
  auto done = std::move(done_);
  done(std::move(result));
}

}  // namespace engram
