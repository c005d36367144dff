#include "table_server/service/fetch_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/service/service_fixture.h"

namespace engram {
namespace {

using ::engram::test::Eventually;
using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::_;

class FetchStreamTest : public test::ServiceFixture {
 protected:
  // The server may see the end of a fetch later than its caller does.
  static constexpr size_t kManyFetches = 100;

  // A fetch under way.
  struct Reading {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::FetchPartitionResponse>> reader;
  };
  std::unique_ptr<Reading> Open(const v1::FetchPartitionRequest& request) {
    auto reading = std::make_unique<Reading>();
    SetDeadline(reading->context);
    reading->reader = stub_->FetchPartition(&reading->context, request);
    return reading;
  }
  v1::FetchPartitionRequest Request(size_t layer_index,
                                    uint32_t partition) const {
    v1::FetchPartitionRequest request;
    request.set_version(manifest_.version());
    request.set_layer_id(ToInt(layer(layer_index)));
    request.set_partition(partition);
    return request;
  }
  // Reads to the end; the sizes of the messages are in sizes_.
  absl::Status ReadAll(Reading& reading, std::string& rows) {
    v1::FetchPartitionResponse message;
    while (reading.reader->Read(&message)) {
      rows += message.rows();
      sizes_.push_back(message.rows().size());
    }
    return FromGrpcStatus(reading.reader->Finish());
  }
  absl::Status Fetch(const v1::FetchPartitionRequest& request,
                     std::string& rows) {
    rows.clear();
    sizes_.clear();
    return ReadAll(*Open(request), rows);
  }
  absl::Status Fetch(const v1::FetchPartitionRequest& request) {
    std::string rows;
    return Fetch(request, rows);
  }

  std::vector<size_t> sizes_;
};

TEST_F(FetchStreamTest, EveryPartitionComesWhole) {
  for (const size_t worker_threads : {0, 2}) {
    Start({.max_fetches = kManyFetches}, nullptr, worker_threads);
    for (size_t i = 0; i < manifest_.layers().size(); ++i) {
      for (uint32_t p = 0; p < manifest_.partition_count(i); ++p) {
        std::string rows;
        ASSERT_THAT(Fetch(Request(i, p), rows), IsOk());
        ASSERT_EQ(rows, test::SyntheticPartition(manifest_,
                                                 {layer(i), PartitionId{p}}));
      }
    }
    server_.reset();
  }
}

TEST_F(FetchStreamTest, PiecesAreWholeRows) {
  const size_t row_bytes = manifest_.row_format().row_bytes();
  Start({.fetch_piece_bytes = 10 * row_bytes + 1});
  std::string rows;
  ASSERT_THAT(Fetch(Request(0, 1), rows), IsOk());
  EXPECT_EQ(rows,
            test::SyntheticPartition(manifest_, {layer(0), PartitionId{1}}));
  ASSERT_GT(sizes_.size(), 1U);
  sizes_.pop_back();
  EXPECT_THAT(sizes_, ::testing::Each(10 * row_bytes));
}

TEST_F(FetchStreamTest, GoesOnFromAnOffset) {
  Start({.fetch_piece_bytes = 1});  // a row
  const std::string all =
      test::SyntheticPartition(manifest_, {layer(1), PartitionId{2}});
  const size_t row_bytes = manifest_.row_format().row_bytes();
  v1::FetchPartitionRequest request = Request(1, 2);
  request.set_offset_bytes(3 * row_bytes);
  std::string rows;
  ASSERT_THAT(Fetch(request, rows), IsOk());
  EXPECT_EQ(rows, all.substr(3 * row_bytes));
  request.set_offset_bytes(all.size());
  ASSERT_THAT(Fetch(request, rows), IsOk());
  EXPECT_EQ(rows, "");
}

TEST_F(FetchStreamTest, SaysWhatIsWrong) {
  Start({.max_fetches = kManyFetches});
  v1::FetchPartitionRequest request = Request(0, 0);
  request.set_version("other");
  EXPECT_EQ(ReasonOf(Fetch(request)), ErrorReason::kWrongTable);
  request = Request(0, 0);
  request.set_layer_id(3);
  EXPECT_EQ(ReasonOf(Fetch(request)), ErrorReason::kUnknownLayer);
  request = Request(0, 100000);
  EXPECT_THAT(Fetch(request), IsError(absl::StatusCode::kOutOfRange, _));
  request = Request(0, 0);
  request.set_offset_bytes(uint64_t{1} << 40);
  EXPECT_THAT(Fetch(request), IsError(absl::StatusCode::kOutOfRange, _));
  request.set_offset_bytes(1);
  EXPECT_THAT(Fetch(request), IsError(absl::StatusCode::kInvalidArgument, _));
  partitions_.Withdraw(0, PartitionId{5});
  EXPECT_THAT(Fetch(Request(0, 5)), IsOk());
  partitions_.Drop(0, PartitionId{5});
  EXPECT_EQ(ReasonOf(Fetch(Request(0, 5))), ErrorReason::kPartitionNotHere);
  server_->Shutdown(absl::Now() + absl::Seconds(20));
  EXPECT_EQ(Gauge(metrics_.gauges().fetches), 0);
}

TEST_F(FetchStreamTest, FetchesAreBounded) {
  Start({.max_fetches = 1, .retry_fetch_after = absl::Milliseconds(70)},
        &gated_tier_);
  const auto first = Open(Request(0, 0));
  gated_tier_.WaitForCopy();
  const absl::Status refused = Fetch(Request(0, 1));
  EXPECT_EQ(ReasonOf(refused), ErrorReason::kOverloaded);
  EXPECT_EQ(RetryAfterOf(refused), absl::Milliseconds(70));
  EXPECT_EQ(Gauge(metrics_.gauges().fetches), 1);
  EXPECT_EQ(Gauge(metrics_.gauges().fetches_limit), 1);
  EXPECT_FALSE(service_->Idle());
  gated_tier_.Open();
  std::string rows;
  EXPECT_THAT(ReadAll(*first, rows), IsOk());
  EXPECT_EQ(rows,
            test::SyntheticPartition(manifest_, {layer(0), PartitionId{0}}));
}

TEST_F(FetchStreamTest, ADrainEndsFetchesAndRefusesNewOnes) {
  Start({}, &gated_tier_);
  const auto under_way = Open(Request(0, 0));
  gated_tier_.WaitForCopy();
  service_->StopAccepting();
  std::string rows;
  EXPECT_EQ(ReasonOf(ReadAll(*under_way, rows)), ErrorReason::kDraining);
  EXPECT_EQ(ReasonOf(Fetch(Request(0, 0))), ErrorReason::kDraining);
}

TEST_F(FetchStreamTest, ASlowTierHoldsUpNoThreadOfAQueue) {
  TableService service(manifest_, partitions_, gated_tier_, metrics_,
                       {.server_name = "s2", .worker_threads = 1});
  const auto server = RpcServer::Start({.listen = "unix:" + dir_.File("t"),
                                        .services = {&service},
                                        .queue_service = &service});
  ASSERT_THAT(server, IsOk());
  stub_ = v1::TableService::NewStub(MakeChannel((*server)->address()));
  const auto fetch = Open(Request(0, 0));
  gated_tier_.WaitForCopy();
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetTableResponse table;
  EXPECT_TRUE(stub_->GetTable(&context, {}, &table).ok());
  gated_tier_.Open();
  std::string rows;
  EXPECT_THAT(ReadAll(*fetch, rows), IsOk());
}

TEST_F(FetchStreamTest, APeerThatTakesNothingIsLeft) {
  const Manifest manifest = test::OnePartitionManifest();
  PartitionSet partitions(manifest);
  test::AddAll(manifest, partitions);
  const SyntheticTier tier(manifest, test::kTestSeed);
  TableService service(manifest, partitions, tier, metrics_,
                       {.server_name = "s2",
                        .limits = {.fetch_piece_bytes = 4096},
                        .clock = &clock_});
  const auto server = RpcServer::Start({.listen = "unix:" + dir_.File("t"),
                                        .services = {&service},
                                        .queue_service = &service});
  ASSERT_THAT(server, IsOk());
  stub_ = v1::TableService::NewStub(
      test::ChannelWithFixedWindow((*server)->address()));
  v1::FetchPartitionRequest request = Request(0, 0);
  request.set_version(manifest.version());
  const auto fetch = Open(request);
  v1::FetchPartitionResponse message;
  ASSERT_TRUE(fetch->reader->Read(&message));
  ASSERT_TRUE(Eventually([&] {
    clock_.Advance(absl::Minutes(2));
    return service.Idle();
  }));
  std::string rows;
  EXPECT_EQ(ReadAll(*fetch, rows).code(), absl::StatusCode::kCancelled);
}

TEST_F(FetchStreamTest, ACancelledFetchLeavesItsPlace) {
  Start({.max_fetches = 1}, &gated_tier_);
  const auto first = Open(Request(0, 0));
  gated_tier_.WaitForCopy();
  first->context.TryCancel();
  std::string rows;
  EXPECT_EQ(ReadAll(*first, rows).code(), absl::StatusCode::kCancelled);
  gated_tier_.Open();
  ASSERT_TRUE(Eventually([&] { return service_->Idle(); }));
  EXPECT_THAT(Fetch(Request(0, 1)), IsOk());
}

}  // namespace
}  // namespace engram
