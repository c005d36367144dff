#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_TIER_ROW_TIER_CONTRACT_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_TIER_ROW_TIER_CONTRACT_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "table_server/tier/row_tier.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/test_table.h"
#include "tests/unit/table_server/tier/read_rows.h"

namespace engram::test {

// A tier over the test table, all partitions of it, and how it is made. What it
// uses lives as long as the pointer.
struct TierCase {
  const char* name;
  std::function<std::shared_ptr<const RowTier>(const Manifest&)> make;
};

// The contract of RowTier. Include it in one file of a test program, which
// instantiates it for implementations.
class RowTierContract : public ::testing::TestWithParam<TierCase> {
 protected:
  std::vector<RowId> RandomRows(size_t layer_index, size_t count,
                                std::mt19937& random) const {
    const uint64_t row_count = manifest_.layers()[layer_index].row_count;
    std::vector<RowId> ids(count);
    for (RowId& id : ids) id = static_cast<RowId>(random() % row_count);
    return ids;
  }
  std::string Wanted(size_t layer_index, const std::vector<RowId>& ids) const {
    return SyntheticRows(manifest_, manifest_.layers()[layer_index].layer_id,
                         ids);
  }

  const Manifest manifest_ = TinyManifest();
  const std::shared_ptr<const RowTier> tier_ = GetParam().make(manifest_);
};

TEST_P(RowTierContract, GivesAnyRowsInAnyOrder) {
  EXPECT_EQ(tier_->row_bytes(), manifest_.row_format().row_bytes());
  std::mt19937 random(1);
  for (size_t layer = 0; layer < manifest_.layers().size(); ++layer) {
    for (const size_t count : {0, 1, 7, 8, 9, 1000}) {
      std::vector<RowId> ids = RandomRows(layer, count, random);
      if (count > 1) {
        ids.back() =
            static_cast<RowId>(manifest_.layers()[layer].row_count - 1);
      }
      std::string out(count * tier_->row_bytes(), '\xEE');  // poisoned
      ASSERT_THAT(ReadRows(*tier_, layer, ids, BytesOf(out)), IsOk());
      EXPECT_EQ(out, Wanted(layer, ids));
    }
  }
}

TEST_P(RowTierContract, GivesEveryRow) {
  for (const PartitionRef& ref : AllPartitions(manifest_)) {
    const size_t layer = *manifest_.IndexOf(ref.layer);
    const std::string wanted = SyntheticPartition(manifest_, ref);
    std::vector<RowId> ids(wanted.size() / tier_->row_bytes());
    const uint64_t first = ToInt(ref.partition) * manifest_.partition_rows();
    for (size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<RowId>(first + i);
    }
    std::string out(wanted.size(), '\xEE');
    ASSERT_THAT(ReadRows(*tier_, layer, ids, BytesOf(out), /*is_scan=*/true),
                IsOk());
    ASSERT_EQ(out, wanted);
  }
}

TEST_P(RowTierContract, MissesAreAppendedAscendingAndOthersAreThere) {
  std::mt19937 random(2);
  const std::vector<RowId> ids = RandomRows(0, 500, random);
  const std::string wanted = Wanted(0, ids);
  std::string out(wanted.size(), '\xEE');
  std::vector<uint32_t> misses = {77777};
  ASSERT_THAT(tier_->CopyRows(0, ids, BytesOf(out), misses), IsOk());
  ASSERT_EQ(misses.front(), 77777U);
  misses.erase(misses.begin());
  EXPECT_TRUE(std::is_sorted(misses.begin(), misses.end()));
  EXPECT_EQ(std::adjacent_find(misses.begin(), misses.end()), misses.end());
  const size_t row_bytes = tier_->row_bytes();
  for (uint32_t i = 0; i < ids.size(); ++i) {
    if (std::binary_search(misses.begin(), misses.end(), i)) continue;
    EXPECT_EQ(out.substr(i * row_bytes, row_bytes),
              wanted.substr(i * row_bytes, row_bytes));
  }
}

// Of the others the slots are not written.
TEST_P(RowTierContract, AFetchFillsTheSlotsThatAreWanted) {
  std::mt19937 random(3);
  const std::vector<RowId> ids = RandomRows(1, 200, random);
  std::string out(ids.size() * tier_->row_bytes(), '\xEE');
  std::vector<uint32_t> misses;
  ASSERT_THAT(tier_->CopyRows(1, ids, BytesOf(out), misses), IsOk());
  if (misses.empty()) return;  // and is never asked
  if (misses.size() > 1) misses.resize(misses.size() / 2);
  std::string fetched(out.size(), '\xEE');
  ASSERT_THAT(FetchRows(*tier_, {.layer_index = 1,
                                 .row_ids = ids,
                                 .wanted = misses,
                                 .out = BytesOf(fetched)}),
              IsOk());
  const std::string wanted = Wanted(1, ids);
  const size_t row_bytes = tier_->row_bytes();
  for (uint32_t i = 0; i < ids.size(); ++i) {
    const bool was_wanted = std::binary_search(misses.begin(), misses.end(), i);
    EXPECT_EQ(fetched.substr(i * row_bytes, row_bytes),
              was_wanted ? wanted.substr(i * row_bytes, row_bytes)
                         : std::string(row_bytes, '\xEE'));
  }
}

TEST_P(RowTierContract, ManyMayAskAtOnce) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int round = 0; round < 30; ++round) {
        const size_t layer = random() % 2;
        const std::vector<RowId> ids = RandomRows(layer, 40, random);
        std::string out(ids.size() * tier_->row_bytes(), '\xEE');
        EXPECT_THAT(ReadRows(*tier_, layer, ids, BytesOf(out)), IsOk());
        EXPECT_EQ(out, Wanted(layer, ids));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_TIER_ROW_TIER_CONTRACT_H_
