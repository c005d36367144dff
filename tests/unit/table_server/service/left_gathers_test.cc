// Gathers that nobody waits for any more while their rows are fetched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/service/waiting_gathers_fixture.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::HasSubstr;

using LeftGathersTest = test::WaitingGathersFixture;

TEST_F(LeftGathersTest, ACancelledOneIsToldAtOnceAndItsMemoryStays) {
  Serve();
  Open();
  Ask(1, Request(0, {1}));
  ASSERT_TRUE(cold_tier_.WaitForFetches(1));
  Cancel(1);
  EXPECT_THAT(Await(1).status,
              IsError(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
  // It counts until nobody writes to its memory any more.
  EXPECT_EQ(Gauge(metrics_.gauges().gathers_in_flight), 1);
  answers_.clear();
  Ask(1, Request(0, {2}));
  EXPECT_EQ(Await(1).rows, Rows(0, {2}));
  cold_tier_.End(0);
  WaitFor(metrics_.gauges().gathers_in_flight, 0);
  EXPECT_THAT(CloseAndFinish(), IsOk());
  EXPECT_EQ(answers_.size(), 1U);
}

TEST_F(LeftGathersTest, ALateOneIsToldAtOnce) {
  Serve();
  Open();
  Ask(1, Request(0, {1}), /*timeout_us=*/1);
  ASSERT_TRUE(cold_tier_.WaitForFetches(1));
  clock_.Advance(absl::Microseconds(1));
  EXPECT_EQ(Await(1).status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Gauge(metrics_.gauges().gathers_in_flight), 1);
  cold_tier_.End(0);
  WaitFor(metrics_.gauges().gathers_in_flight, 0);
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

TEST_F(LeftGathersTest, AnAbandonedStreamEndsWithItsFetches) {
  Serve();
  Open();
  Ask(1, Request(0, {1}));
  Ask(2, Request(0, {3}));
  ASSERT_TRUE(cold_tier_.WaitForFetches(2));
  context_->TryCancel();
  EXPECT_EQ(Finish().code(), absl::StatusCode::kCancelled);
  cold_tier_.End(1);
  WaitFor(metrics_.gauges().gathers_in_flight, 1);
  EXPECT_EQ(Gauge(metrics_.gauges().streams), 1);
  cold_tier_.End(0);
  WaitFor(metrics_.gauges().streams, 0);
  EXPECT_EQ(Gauge(metrics_.gauges().gathers_in_flight), 0);
}

TEST_F(LeftGathersTest, AServerEndsOnceItsFetchesHave) {
  Serve();
  Open();
  Ask(1, Request(0, {1}));
  ASSERT_TRUE(cold_tier_.WaitForFetches(1));
  std::thread ending([&] { server_.reset(); });
  EXPECT_FALSE(Finish().ok());
  cold_tier_.End(0);
  ending.join();
  service_.reset();
}

TEST_F(LeftGathersTest, ADrainLetsThemEnd) {
  Serve();
  Open();
  Ask(1, Request(0, {1}));
  ASSERT_TRUE(cold_tier_.WaitForFetches(1));
  service_->StopAccepting();
  EXPECT_FALSE(service_->Idle());
  cold_tier_.End(0);
  EXPECT_EQ(ReasonOf(Finish()), ErrorReason::kDraining);
  EXPECT_EQ(answers_[1].rows, Rows(0, {1}));
}

TEST_F(LeftGathersTest, TheMemoryOfAPartitionStaysWhileItsRowsAreFetched) {
  Serve();
  Open();
  Ask(1, Request(0, {1}));
  ASSERT_TRUE(cold_tier_.WaitForFetches(1));
  partitions_.Withdraw(0, PartitionId{0});
  const LeaseEpochs::Mark mark = partitions_.Drop(0, PartitionId{0});
  Cancel(1);
  EXPECT_EQ(Await(1).status.code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(partitions_.LeasesEnded(mark));
  cold_tier_.End(0);
  EXPECT_TRUE(
      partitions_.WaitUntilLeasesEnded(mark, absl::Now() + absl::Seconds(30)));
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

// Streams that come, ask and vanish while their rows are fetched.
TEST_F(LeftGathersTest, VanishingCallersLeaveNothingBehind) {
  cold_tier_.Open();
  Serve({.piece_bytes = BytesOf(5)}, /*worker_threads=*/2);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 25; ++round) {
        grpc::ClientContext context;
        SetDeadline(context);
        const auto stream = stub_->GatherStream(&context);
        v1::GatherStreamRequest request;
        for (uint64_t id = 0; id < 5; ++id) {
          request.set_call_id(id);
          *request.mutable_gather() = Request(0, ManyIds(50));
          stream->Write(request);
        }
        v1::GatherStreamResponse response;
        for (int i = 0; i < round % 5; ++i) stream->Read(&response);
        if ((t + round) % 2 == 0) context.TryCancel();
        stream->WritesDone();
        while (stream->Read(&response)) {
        }
        stream->Finish();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  WaitFor(metrics_.gauges().streams, 0);
  EXPECT_EQ(Gauge(metrics_.gauges().gathers_in_flight), 0);
  EXPECT_EQ(Gauge(metrics_.gauges().gathers_waiting), 0);
}

TEST_F(LeftGathersTest, TheyCountTowardsTheLimitOfTheirStream) {
  Serve({.max_gathers_in_flight_per_stream = 3});
  Open();
  for (uint64_t id = 1; id <= 2; ++id) Ask(id, Request(0, {1}));
  Ask(3, Request(0, {3}), /*timeout_us=*/1);
  ASSERT_TRUE(cold_tier_.WaitForFetches(3));
  Cancel(1);
  Cancel(2);
  EXPECT_EQ(Await(1).status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Await(2).status.code(), absl::StatusCode::kCancelled);
  clock_.Advance(absl::Microseconds(1));
  EXPECT_EQ(Await(3).status.code(), absl::StatusCode::kDeadlineExceeded);
  Ask(4, Request(0, {1}));
  EXPECT_THAT(Await(4).status,
              IsError(absl::StatusCode::kResourceExhausted,
                      HasSubstr("3 that have ended wait for rows")));
  cold_tier_.End(1);
  WaitFor(metrics_.gauges().gathers_in_flight, 2);
  Ask(5, Request(0, {2}));
  EXPECT_THAT(Await(5).status, IsOk());
  EXPECT_EQ(cold_tier_.fetches(), 3U);
  cold_tier_.End(0);
  cold_tier_.End(2);
  WaitFor(metrics_.gauges().gathers_in_flight, 0);
  for (uint64_t id = 7; id <= 9; ++id) Ask(id, Request(0, {1}));
  EXPECT_TRUE(cold_tier_.WaitForFetches(6));
  cold_tier_.Open();
  for (uint64_t id = 7; id <= 9; ++id) EXPECT_THAT(Await(id).status, IsOk());
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

}  // namespace
}  // namespace engram
