#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_LOCAL_STORE_FETCH_CONTRACT_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_LOCAL_STORE_FETCH_CONTRACT_H_

// What every LocalStore has to do when it is asked for rows.

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/table_server/store/local_store_contract.h"

namespace engram::test {

TEST_P(LocalStoreContract, FetchesRowsOfAnyPartition) {
  Open();
  PutAll(1);
  std::mt19937 random(3);
  const uint64_t row_count = manifest_.layers()[1].row_count;
  for (const size_t count : {1u, 2u, 24u, 1536u}) {
    std::vector<RowId> rows = {static_cast<RowId>(row_count - 1)};
    while (rows.size() < count) {
      rows.push_back(static_cast<RowId>(random() % row_count));
    }
    const auto got = FetchRows(*store_, manifest_, 1, rows);
    ASSERT_THAT(got, IsOk());
    EXPECT_EQ(*got, Rows(1, rows));
  }
}

TEST_P(LocalStoreContract, FetchTouchesOnlySlotsThatAreWanted) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 1)), IsOk());
  // The others are not even there.
  const RowId row = FirstRow(1);
  OutFetch fetch(*store_, manifest_, 0,
                 {FirstRow(0), row + 3, FirstRow(2), row, row + 3, row + 1},
                 {1, 3, 4});
  const auto got = fetch.Wait();
  ASSERT_THAT(got, IsOk());
  const std::string poison(manifest_.row_format().row_bytes(), '\xEE');
  EXPECT_EQ(*got, poison + Rows(0, {row + 3}) + poison +
                      Rows(0, {row, row + 3}) + poison);
}

TEST_P(LocalStoreContract, FetchOfNothingIsDone) {
  Open();
  OutFetch fetch(*store_, manifest_, 0, {1, 2}, {});
  EXPECT_THAT(fetch.Wait(), IsOk());
}

TEST_P(LocalStoreContract, ReadsABlockOnceForAllItsRows) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 0)), IsOk());
  ASSERT_THAT(FetchRows(*store_, manifest_, 0, {1, 0, 1, 1, 0}), IsOk());
  EXPECT_EQ(store_->stats().reads, 1u);
}

TEST_P(LocalStoreContract, ReadsNothingAfterTheDeadline) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 0)), IsOk());
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0, 1}, absl::InfinitePast()),
              IsError(absl::StatusCode::kDeadlineExceeded, ::testing::_));
  EXPECT_EQ(store_->stats().reads, 0u);
  EXPECT_EQ(store_->stats().late_fetches, 1u);
}

TEST_P(LocalStoreContract, RefusesMoreReadsThanMayWait) {
  Open({.max_queued = 4});
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 0)), IsOk());
  // One of more rows than that waits for nobody.
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0, 1, 2, 3, 4, 5}), IsOk());
  }
  EXPECT_EQ(store_->stats().queued_reads, 0u);
  Open({.max_queued = 0});
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0}),
              IsError(absl::StatusCode::kResourceExhausted,
                      ::testing::HasSubstr("the limit is 0")));
  EXPECT_EQ(store_->stats().refused_fetches, 1u);
  EXPECT_EQ(store_->stats().reads, 0u);
}

TEST_P(LocalStoreContract, FetchesWhileOthersPut) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0, 0)), IsOk());
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (RowId i = 0; i < 50; ++i) {
        const std::vector<RowId> rows = {i % 64, (i * 7 + t) % 64};
        const auto got = FetchRows(*store_, manifest_, 0, rows);
        ENGRAM_CHECK(got.ok() && *got == Rows(0, rows));
      }
    });
  }
  for (uint32_t p = 1; p < 5; ++p) {
    EXPECT_THAT(PutMade(*store_, manifest_, Ref(0, p)), IsOk());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store_->stats().queued_reads, 0u);
}

TEST_P(LocalStoreContract, IsDestroyedWhileFetchesAreOut) {
  Open();
  PutAll(0);
  std::vector<OutFetch> fetches;
  for (RowId i = 0; i < 20; ++i) {
    fetches.push_back(
        StartFetch(*store_, manifest_, 0, {i, FirstRow(1) + i, FirstRow(2)}));
  }
  store_.reset();
  for (OutFetch& fetch : fetches) {
    EXPECT_TRUE(fetch.IsDone());
    EXPECT_THAT(fetch.Wait(), IsOk());
  }
}

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_LOCAL_STORE_FETCH_CONTRACT_H_
