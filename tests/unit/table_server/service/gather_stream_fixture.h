#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_SERVICE_GATHER_STREAM_FIXTURE_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_SERVICE_GATHER_STREAM_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/wire/error_detail.h"
#include "tests/unit/table_server/service/service_fixture.h"

namespace engram::test {

// What came of one gather of a stream.
struct StreamAnswer {
  std::string rows;
  std::vector<size_t> piece_bytes;
  bool ended = false;
  absl::Status status;
  std::string version;
  uint32_t crc32c = 0;
};

// A GatherStream of a ServiceFixture.
class GatherStreamFixture : public ServiceFixture {
 protected:
  void Open() {
    context_ = std::make_unique<grpc::ClientContext>();
    SetDeadline(*context_);
    stream_ = stub_->GatherStream(context_.get());
  }
  void Ask(uint64_t call_id, v1::GatherRequest gather,
           uint64_t timeout_us = 0) {
    v1::GatherStreamRequest request;
    request.set_call_id(call_id);
    *request.mutable_gather() = std::move(gather);
    request.set_timeout_us(timeout_us);
    ASSERT_TRUE(stream_->Write(request));
  }
  void Cancel(uint64_t call_id) {
    v1::GatherStreamRequest request;
    request.set_call_id(call_id);
    request.mutable_cancel();
    ASSERT_TRUE(stream_->Write(request));
  }
  // Reads one message into answers_; false at the end of the stream.
  bool ReadOne() {
    v1::GatherStreamResponse response;
    if (!stream_->Read(&response)) return false;
    StreamAnswer& answer = answers_[response.call_id()];
    EXPECT_FALSE(answer.ended) << "more than one end of " << response.call_id();
    if (response.has_error()) {
      answer.ended = true;
      answer.status = FromRpcStatusProto(response.error());
      return true;
    }
    const v1::GatherStreamResponse::Piece& piece = response.piece();
    answer.rows += piece.rows();
    answer.piece_bytes.push_back(piece.rows().size());
    if (piece.last()) {
      answer.ended = true;
      answer.version = piece.version();
      answer.crc32c = piece.crc32c();
    }
    return true;
  }
  const StreamAnswer& Await(uint64_t call_id) {
    while (!answers_[call_id].ended && ReadOne()) {
    }
    return answers_[call_id];
  }
  absl::Status Finish() {
    while (ReadOne()) {
    }
    return FromGrpcStatus(stream_->Finish());
  }
  absl::Status CloseAndFinish() {
    stream_->WritesDone();
    return Finish();
  }
  std::vector<RowId> ManyIds(size_t count) const {
    std::vector<RowId> ids(count);
    for (size_t i = 0; i < count; ++i) {
      ids[i] = static_cast<RowId>(i * 7919 % manifest_.layers()[0].row_count);
    }
    return ids;
  }

  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::GatherStreamRequest,
                                           v1::GatherStreamResponse>>
      stream_;
  std::map<uint64_t, StreamAnswer> answers_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_SERVICE_GATHER_STREAM_FIXTURE_H_
