#ifndef ENGRAM_ENGRAM_CLIENT_RPC_LANE_CALL_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_LANE_CALL_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/wire/gather_crc.h"
#include "core/wire/piece_reader.h"
#include "engram_client/rpc/table_transport.h"

namespace engram {

// One gather of a lane. Belongs to one LaneStream at a time, which says what
// its mutex guards.
//
// A reply's pieces come in order, so that the place of each is known as soon as
// its head is read: Reserve. Where no sum is wanted, pieces may then be copied
// at the same time.
class LaneCall {
 public:
  // `lane_load`, which must outlive `Tell`, counts the reply's bytes as long as
  // the call has not ended.
  LaneCall(const TableTransport::GatherRequest& request,
           std::shared_ptr<RowSink> sink, TableTransport::StatusDone done,
           std::atomic<uint64_t>* lane_load);

  // The message that asks for the rows.
  grpc::ByteBuffer Request(uint64_t id) const;

  // Takes the place of one more piece. DATA_LOSS: no piece of this reply may
  // look so. REQUIRES: the stream's mutex.
  absl::Status Reserve(const PieceMessage& piece);

  // Copies a piece's rows to the sink.
  void Copy(const PieceMessage& piece, uint64_t offset_bytes);
  // Copy for a call with a sum, in order; DATA_LOSS once the last piece shows
  // that the sum is wrong.
  absl::Status CopyAndSum(const PieceMessage& piece, uint64_t offset_bytes);

  // Calls `done` with `result`. Once, after the end, without a lock.
  void Tell();

  bool wants_sum() const { return crc_.has_value(); }
  absl::Time deadline() const { return deadline_; }
  // REQUIRES: the stream's mutex.
  uint64_t reserved_bytes() const { return reserved_bytes_; }

  // Guarded by the stream's mutex.
  uint64_t id = 0;        // 0: not sent
  bool complete = false;  // the last piece has been reserved
  uint32_t copies = 0;    // pieces that are being copied
  bool ended = false;     // by `result`; told when nothing copies any more
  absl::Status result;

 private:
  const std::string version_;
  const uint64_t reply_bytes_;
  const absl::Time deadline_;
  const grpc::Slice gather_;  // serialized
  std::atomic<uint64_t>* const lane_load_;
  std::shared_ptr<RowSink> sink_;
  TableTransport::StatusDone done_;
  uint64_t reserved_bytes_ = 0;
  std::optional<GatherCrc> crc_;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_LANE_CALL_H_
