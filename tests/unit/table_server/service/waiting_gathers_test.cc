// Gathers whose rows have to be fetched: who waits, and who does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/notification.h"
#include "core/wire/gather_crc.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/service/waiting_gathers_fixture.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WaitingGathersTest : public test::WaitingGathersFixture {
 protected:
  // Of gathers that succeeded.
  double RowsSoFar() const {
    for (const auto& family : registry_->Collect()) {
      if (family.name != "engram_table_rows_total") continue;
      return family.metric.front().counter.value;
    }
    return -1;
  }
};

TEST_F(WaitingGathersTest, OthersPassOneThatWaits) {
  for (const size_t worker_threads : {0, 1}) {
    Serve({}, worker_threads);
    Open();
    const size_t before = cold_tier_.fetches();
    Ask(1, Request(0, {1}));
    ASSERT_TRUE(cold_tier_.WaitForFetches(before + 1));
    EXPECT_EQ(Gauge(metrics_.gauges().gathers_waiting), 1);
    for (uint64_t id = 2; id < 20; ++id) {
      Ask(id, Request(0, {static_cast<RowId>(2 * id)}));
      EXPECT_EQ(Await(id).rows, Rows(0, {static_cast<RowId>(2 * id)}));
    }
    EXPECT_FALSE(answers_[1].ended);
    cold_tier_.End(before);
    EXPECT_EQ(Await(1).rows, Rows(0, {1}));
    EXPECT_EQ(Gauge(metrics_.gauges().gathers_waiting), 0);
    EXPECT_THAT(CloseAndFinish(), IsOk());
    answers_.clear();
    server_.reset();
  }
}

TEST_F(WaitingGathersTest, OnlyWhatIsMissingIsFetchedAndByTheDeadline) {
  Serve();
  Open();
  v1::GatherRequest request = Request(0, {2, 3, 4, 7});
  *request.add_layers() = Request(1, {8}).layers(0);
  *request.add_layers() = Request(1, {9}).layers(0);
  request.set_want_crc32c(true);
  Ask(1, request, /*timeout_us=*/5'000'000);
  ASSERT_TRUE(cold_tier_.WaitForFetches(2));
  const RowFetch first = cold_tier_.fetch(0);
  EXPECT_EQ(first.layer_index, 0U);
  EXPECT_THAT(first.wanted, ElementsAre(1, 3));
  EXPECT_THAT(first.row_ids, ElementsAre(2, 3, 4, 7));
  EXPECT_EQ(first.out.size(), BytesOf(4));
  EXPECT_FALSE(first.is_scan);
  EXPECT_EQ(first.deadline, clock_.Now() + absl::Seconds(5));
  const RowFetch second = cold_tier_.fetch(1);
  EXPECT_EQ(second.layer_index, 1U);
  EXPECT_THAT(second.row_ids, ElementsAre(9));
  EXPECT_EQ(second.deadline, first.deadline);
  cold_tier_.End(1);
  EXPECT_EQ(Gauge(metrics_.gauges().gathers_waiting), 1);
  cold_tier_.End(0);
  EXPECT_EQ(Await(1).rows, Rows(0, {2, 3, 4, 7}) + Rows(1, {8, 9}));
  GatherCrc crc(manifest_.version());
  crc.AddLayer(layer(0), std::vector<RowId>{2, 3, 4, 7});
  crc.AddLayer(layer(1), std::vector<RowId>{8});
  crc.AddLayer(layer(1), std::vector<RowId>{9});
  crc.AddRows({reinterpret_cast<const std::byte*>(answers_[1].rows.data()),
               answers_[1].rows.size()});
  EXPECT_EQ(answers_[1].crc32c, crc.value());
  EXPECT_EQ(cold_tier_.fetches(), 2U);
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

TEST_F(WaitingGathersTest, PiecesOfAGatherComeOneAfterAnother) {
  Serve({.piece_bytes = BytesOf(2)});
  Open();
  const std::vector<RowId> ids = {1, 2, 4, 6, 8, 3, 5, 7};
  Ask(1, Request(0, ids));
  for (size_t piece = 0; piece < 3; ++piece) {
    ASSERT_TRUE(cold_tier_.WaitForFetches(piece + 1));
    // A piece that waits is the only one of its gather.
    Ask(2 + piece, Request(0, {2}));
    EXPECT_THAT(Await(2 + piece).status, IsOk());
    EXPECT_EQ(cold_tier_.fetches(), piece + 1);
    cold_tier_.End(piece);
  }
  EXPECT_EQ(Await(1).rows, Rows(0, ids));
  EXPECT_EQ(answers_[1].piece_bytes.size(), 4U);
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

TEST_F(WaitingGathersTest, LargeOnesThatWaitAreBounded) {
  Serve({.small_bytes = BytesOf(1), .max_waiting_pieces = 2});
  Open();
  for (uint64_t id = 1; id <= 3; ++id) Ask(id, Request(0, large_cold_));
  Ask(4, Request(0, large_hot_));
  ASSERT_TRUE(cold_tier_.WaitForFetches(2));
  // Small ones have no such bound.
  Ask(5, Request(0, {1}));
  ASSERT_TRUE(cold_tier_.WaitForFetches(3));
  Ask(6, Request(0, {2}));
  EXPECT_THAT(Await(6).status, IsOk());
  EXPECT_EQ(cold_tier_.fetches(), 3U);
  EXPECT_FALSE(answers_[4].ended);
  cold_tier_.End(0);
  EXPECT_EQ(Await(1).rows, Rows(0, large_cold_));
  ASSERT_TRUE(cold_tier_.WaitForFetches(4));
  cold_tier_.End(1);
  EXPECT_EQ(Await(4).rows, Rows(0, large_hot_));
  cold_tier_.End(2);
  cold_tier_.End(3);
  EXPECT_EQ(Await(3).rows, Rows(0, large_cold_));
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

// Large pieces of others may have been waiting for the thread for long.
TEST_F(WaitingGathersTest, RowsThatAreThereGoBeforeWhatWaitsForTheThread) {
  queue_.thread_count = 1;
  Serve();
  Open();
  Ask(1, Request(0, {1}));
  ASSERT_TRUE(cold_tier_.WaitForFetches(1));
  QueueLoop& loop = *server_->loops().front();
  Notification busy;
  Notification go_on;
  Notification passed;
  double rows_before = -1;
  ASSERT_TRUE(loop.Defer([&] {
    busy.Notify();
    go_on.Wait();
  }));
  busy.Wait();
  ASSERT_TRUE(loop.Defer([&] {
    rows_before = RowsSoFar();
    passed.Notify();
  }));
  cold_tier_.End(0);
  go_on.Notify();
  passed.Wait();
  EXPECT_EQ(rows_before, 1);
  EXPECT_EQ(Await(1).rows, Rows(0, {1}));
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

TEST_F(WaitingGathersTest, AFailedFetchIsNamedAndOthersGoOn) {
  Serve();
  Open();
  const auto row = static_cast<RowId>(3 * manifest_.partition_rows() + 1);
  Ask(1, Request(0, {row}));
  ASSERT_TRUE(cold_tier_.WaitForFetches(1));
  cold_tier_.End(0, absl::DataLossError("page 7 is damaged"));
  EXPECT_THAT(
      Await(1).status,
      IsError(absl::StatusCode::kUnavailable,
              AllOf(HasSubstr("server s1"), HasSubstr(manifest_.version()),
                    HasSubstr(absl::StrCat("1 rows of layer ", ToInt(layer(0)),
                                           " partition 3")),
                    HasSubstr("DATA_LOSS: page 7 is damaged"))));
  EXPECT_EQ(ReasonOf(answers_[1].status), ErrorReason::kNone);
  Ask(2, Request(0, {row}));
  ASSERT_TRUE(cold_tier_.WaitForFetches(2));
  cold_tier_.End(1, absl::ResourceExhaustedError("9 reads are queued"));
  EXPECT_EQ(ReasonOf(Await(2).status), ErrorReason::kOverloaded);
  EXPECT_TRUE(RetryAfterOf(answers_[2].status).has_value());
  Ask(3, Request(0, {row}));
  ASSERT_TRUE(cold_tier_.WaitForFetches(3));
  cold_tier_.End(2, absl::DeadlineExceededError("not begun"));
  EXPECT_THAT(Await(3).status,
              IsError(absl::StatusCode::kDeadlineExceeded, HasSubstr("s1")));
  Ask(4, Request(0, {2}));
  EXPECT_EQ(Await(4).rows, Rows(0, {2}));
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

TEST_F(WaitingGathersTest, ManyAtOnceHaveTheRightRows) {
  cold_tier_.Open();
  Serve({.small_bytes = BytesOf(5), .piece_bytes = BytesOf(3)});
  Open();
  std::map<uint64_t, std::vector<RowId>> asked;
  for (uint64_t id = 0; id < 60; ++id) {
    asked[id] = ManyIds(id);
    Ask(id, Request(id % 2, asked[id]));
  }
  for (const auto& [id, ids] : asked) {
    ASSERT_THAT(Await(id).status, IsOk());
    EXPECT_EQ(answers_[id].rows, Rows(id % 2, ids));
  }
  EXPECT_THAT(CloseAndFinish(), IsOk());
}

}  // namespace
}  // namespace engram
