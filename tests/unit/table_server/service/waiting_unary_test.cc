// Unary gathers and copies of partitions whose rows have to be fetched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/base/notification.h"
#include "core/wire/error_detail.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/service/waiting_gathers_fixture.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A unary call, asked for on another thread.
struct UnaryCallUnderWay {
  grpc::ClientContext context;
  v1::GatherRequest request;
  v1::GatherResponse response;
  grpc::Status status;
  Notification done;
};

class WaitingUnaryTest : public test::WaitingGathersFixture {
 protected:
  void Ask(UnaryCallUnderWay& call, const std::vector<RowId>& ids) {
    SetDeadline(call.context);
    call.request = Request(0, ids);
    stub_->async()->Gather(&call.context, &call.request, &call.response,
                           [&call](const grpc::Status& status) {
                             call.status = status;
                             call.done.Notify();
                           });
  }
};

TEST_F(WaitingUnaryTest, OthersPassOneThatWaits) {
  Serve({.piece_bytes = BytesOf(2)});
  UnaryCallUnderWay call;
  Ask(call, {2, 4, 1, 6, 3});
  for (size_t piece = 0; piece < 2; ++piece) {
    ASSERT_TRUE(cold_tier_.WaitForFetches(piece + 1));
    v1::GatherResponse response;
    ASSERT_THAT(Gather(Request(0, {2, 4}), response), IsOk());
    EXPECT_EQ(response.rows(), Rows(0, {2, 4}));
    EXPECT_FALSE(call.done.HasBeenNotified());
    cold_tier_.End(piece);
  }
  call.done.Wait();
  EXPECT_TRUE(call.status.ok());
  EXPECT_EQ(call.response.rows(), Rows(0, {2, 4, 1, 6, 3}));
}

TEST_F(WaitingUnaryTest, HearsWhatIsWrong) {
  Serve();
  UnaryCallUnderWay call;
  Ask(call, {1});
  ASSERT_TRUE(cold_tier_.WaitForFetches(1));
  cold_tier_.End(0, absl::InternalError("EIO"));
  call.done.Wait();
  EXPECT_THAT(FromGrpcStatus(call.status),
              IsError(absl::StatusCode::kUnavailable, HasSubstr("EIO")));
}

TEST_F(WaitingUnaryTest, ACancelledOneKeepsItsMemory) {
  Serve();
  UnaryCallUnderWay call;
  Ask(call, {1});
  ASSERT_TRUE(cold_tier_.WaitForFetches(1));
  call.context.TryCancel();
  call.done.Wait();
  EXPECT_EQ(call.status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(Gauge(metrics_.gauges().gathers_in_flight), 1);
  cold_tier_.End(0);
  WaitFor(metrics_.gauges().gathers_in_flight, 0);
}

class WaitingFetchTest : public test::WaitingGathersFixture {
 protected:
  struct Reading {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::FetchPartitionResponse>> reader;
  };
  std::unique_ptr<Reading> OpenFetch() {
    v1::FetchPartitionRequest request;
    request.set_version(manifest_.version());
    request.set_layer_id(ToInt(layer(0)));
    request.set_partition(1);
    auto reading = std::make_unique<Reading>();
    SetDeadline(reading->context);
    reading->reader = stub_->FetchPartition(&reading->context, request);
    return reading;
  }
  static absl::Status ReadAll(Reading& reading, std::string& rows) {
    v1::FetchPartitionResponse message;
    while (reading.reader->Read(&message)) rows += message.rows();
    return FromGrpcStatus(reading.reader->Finish());
  }
};

TEST_F(WaitingFetchTest, APartitionThatIsColdComesWhole) {
  Serve({.fetch_piece_bytes = BytesOf(100)});
  const std::unique_ptr<Reading> reading = OpenFetch();
  ASSERT_TRUE(cold_tier_.WaitForFetches(1));
  EXPECT_TRUE(cold_tier_.fetch(0).is_scan);
  EXPECT_THAT(Gather(Request(0, {2})), IsOk());  // nobody is held up
  cold_tier_.Open();
  std::string rows;
  EXPECT_THAT(ReadAll(*reading, rows), IsOk());
  EXPECT_EQ(rows,
            test::SyntheticPartition(manifest_, {layer(0), PartitionId{1}}));
}

TEST_F(WaitingFetchTest, HearsWhatIsWrong) {
  Serve();
  const std::unique_ptr<Reading> reading = OpenFetch();
  ASSERT_TRUE(cold_tier_.WaitForFetches(1));
  cold_tier_.End(0, absl::DataLossError("page 7"));
  std::string rows;
  EXPECT_THAT(ReadAll(*reading, rows),
              IsError(absl::StatusCode::kUnavailable,
                      AllOf(HasSubstr("partition 1"), HasSubstr("page 7"))));
  EXPECT_EQ(rows, "");
}

TEST_F(WaitingFetchTest, ACancelledOneKeepsItsMemoryAndTheLease) {
  Serve();
  const std::unique_ptr<Reading> reading = OpenFetch();
  ASSERT_TRUE(cold_tier_.WaitForFetches(1));
  partitions_.Withdraw(0, PartitionId{1});
  const LeaseEpochs::Mark mark = partitions_.Drop(0, PartitionId{1});
  reading->context.TryCancel();
  std::string rows;
  EXPECT_EQ(ReadAll(*reading, rows).code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(partitions_.LeasesEnded(mark));
  cold_tier_.End(0);
  EXPECT_TRUE(partitions_.LeasesEnded(mark));
  WaitFor(metrics_.gauges().fetches, 0);
}

TEST_F(WaitingFetchTest, AServerEndsOnceItsFetchesHave) {
  Serve();
  const std::unique_ptr<Reading> reading = OpenFetch();
  ASSERT_TRUE(cold_tier_.WaitForFetches(1));
  std::thread ending([&] { server_.reset(); });
  std::string rows;
  EXPECT_FALSE(ReadAll(*reading, rows).ok());
  cold_tier_.End(0);
  ending.join();
}

// A peer that asks and cancels again and again has no more rows on their way
// than one that waits.
TEST_F(WaitingFetchTest, ACancelledOneKeepsItsPlace) {
  Serve({.max_fetches = 1});
  const std::unique_ptr<Reading> first = OpenFetch();
  ASSERT_TRUE(cold_tier_.WaitForFetches(1));
  first->context.TryCancel();
  std::string rows;
  EXPECT_EQ(ReadAll(*first, rows).code(), absl::StatusCode::kCancelled);
  for (int i = 0; i < 20; ++i) {
    const std::unique_ptr<Reading> refused = OpenFetch();
    EXPECT_EQ(ReasonOf(ReadAll(*refused, rows)), ErrorReason::kOverloaded);
  }
  EXPECT_EQ(Gauge(metrics_.gauges().fetches), 1);
  EXPECT_EQ(cold_tier_.fetches(), 1U);
  cold_tier_.Open();
  WaitFor(metrics_.gauges().fetches, 0);
  rows.clear();
  EXPECT_THAT(ReadAll(*OpenFetch(), rows), IsOk());
  EXPECT_EQ(rows,
            test::SyntheticPartition(manifest_, {layer(0), PartitionId{1}}));
}

TEST_F(WaitingFetchTest, IsAScan) {
  cold_tier_.Open();
  Serve();
  std::string rows;
  EXPECT_THAT(ReadAll(*OpenFetch(), rows), IsOk());
  EXPECT_GT(cold_tier_.scans(), 0U);
  const size_t before = cold_tier_.scans();
  EXPECT_THAT(Gather(Request(0, {1, 2})), IsOk());
  EXPECT_EQ(cold_tier_.scans(), before);
}

}  // namespace
}  // namespace engram
