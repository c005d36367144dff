#include "table_server/heat/heat_recording.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <thread>

#include "core/base/check.h"
#include "core/wire/heat_hash.h"
#include "table_server/heat/heat_recorder.h"
#include "tests/testing/eventually.h"
#include "tests/testing/zipf_rows.h"
#include "tests/unit/table_server/test_table.h"

namespace engram {
namespace {

constexpr size_t kRoom = 1 << 16;  // for all rows of the tiny table

class HeatRecordingTest : public ::testing::Test {
 protected:
  uint32_t RowsOf(size_t layer_index) const {
    return static_cast<uint32_t>(manifest_.layers()[layer_index].row_count);
  }
  LayerId layer(size_t index) const {
    return manifest_.layers()[index].layer_id;
  }
  static std::map<uint64_t, uint64_t> SampleOf(const HeatRecording& heat) {
    std::map<uint64_t, uint64_t> sample;
    for (size_t i = 0; i < HeatRecording::kParts; ++i) {
      for (const RowLookups& row : heat.SampleOf(i, heat.last_hash())) {
        sample[row.key] = row.lookups;
      }
    }
    return sample;
  }
  static std::map<uint64_t, uint64_t> HotRowsOf(const HeatRecording& heat) {
    std::map<uint64_t, uint64_t> rows;
    for (size_t i = 0; i < HeatRecording::kParts; ++i) {
      for (const RowLookups& row : heat.HotRowsOf(i)) {
        rows[row.key] = row.lookups;
      }
    }
    return rows;
  }

  const Manifest manifest_ = test::TinyManifest();
};

TEST_F(HeatRecordingTest, CountsByPartitionAndByRow) {
  HeatRecording heat(manifest_, kRoom);
  const auto partition_rows = static_cast<RowId>(manifest_.partition_rows());
  heat.Add(0, {{0, 1, 1, partition_rows}});
  heat.Add(1, {0});
  EXPECT_EQ(heat.lookups(), 5U);
  EXPECT_EQ(heat.LookupsOf(0, 0), 3U);
  EXPECT_EQ(heat.LookupsOf(0, 1), 1U);
  EXPECT_EQ(heat.LookupsOf(0, 2), 0U);
  EXPECT_EQ(heat.LookupsOf(1, 0), 1U);
  EXPECT_EQ(heat.sampled_rows(), 4U);
  const std::map<uint64_t, uint64_t> wanted = {
      {HeatKey(layer(0), 0), 1},
      {HeatKey(layer(0), 1), 2},
      {HeatKey(layer(0), partition_rows), 1},
      {HeatKey(layer(1), 0), 1}};
  EXPECT_EQ(SampleOf(heat), wanted);
  heat.Close();
  heat.Add(0, {{0, 2}});
  EXPECT_EQ(SampleOf(heat), wanted);
}

TEST_F(HeatRecordingTest, MemoryIsBounded) {
  HeatRecording heat(manifest_, 128);
  for (size_t i = 0; i < 2; ++i) {
    std::vector<RowId> rows(RowsOf(i));
    std::iota(rows.begin(), rows.end(), 0);
    heat.Add(i, rows);
    EXPECT_LE(heat.sampled_rows(), 128U);
  }
  const std::map<uint64_t, uint64_t> sample = SampleOf(heat);
  EXPECT_GT(sample.size(), 0U);
  // Exactly the rows up to the last hash, of all parts.
  std::map<uint64_t, uint64_t> wanted;
  for (size_t i = 0; i < 2; ++i) {
    for (RowId row = 0; row < RowsOf(i); ++row) {
      const uint64_t key = HeatKey(layer(i), row);
      if (HeatHash(key) <= heat.last_hash()) wanted[key] = 1;
    }
  }
  EXPECT_EQ(sample, wanted);
  EXPECT_LE(HotRowsOf(heat).size(), HeatRecording::kMaxHotRows);
}

// However gathers are cut: each lookup has the same chance, so that estimates
// of hot rows are of the right size, and columns that come every so many rows
// are not favoured.
TEST_F(HeatRecordingTest, HotRowsAreEstimatedWithoutBias) {
  constexpr int kRounds = 20'000;
  for (const size_t length : {3, 16, 24}) {
    HeatRecording heat(manifest_, 64);
    std::vector<RowId> rows(length);
    std::iota(rows.begin(), rows.end(), 0);
    for (int i = 0; i < kRounds; ++i) heat.Add(0, rows);
    const std::map<uint64_t, uint64_t> hot = HotRowsOf(heat);
    ASSERT_EQ(hot.size(), length);
    EXPECT_EQ(heat.hot_missed(), 0U);
    for (const auto& [key, lookups] : hot) {
      // Six standard errors.
      EXPECT_NEAR(lookups, kRounds, 6 * std::sqrt(16.0 * kRounds))
          << RowOfHeatKey(key) << " of " << length;
    }
  }
}

// All counts are whole although threads count the same rows at once.
TEST_F(HeatRecordingTest, ThreadsCountTogether) {
  constexpr int kThreads = 4;
  constexpr int kGathers = 300;
  HeatRecorder recorder;
  const auto small = std::make_shared<HeatRecording>(manifest_, 128);
  ASSERT_TRUE(recorder.Start(small));
  HeatRecording large(manifest_, kRoom);
  const ZipfRows zipf(0.9, RowsOf(0));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::vector<RowId> rows(100);
      for (int i = 0; i < kGathers; ++i) {
        for (RowId& row : rows) row = zipf.Draw(random);
        recorder.Record(0, rows);
        large.Add(0, rows);
        if (i % 50 == 0) {
          EXPECT_LE(small->sampled_rows(), 128U);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(small->lookups(), uint64_t{kThreads} * kGathers * 100);
  EXPECT_EQ(large.lookups(), small->lookups());
  uint64_t sum = 0;
  for (const auto& [key, lookups] : SampleOf(large)) sum += lookups;
  EXPECT_EQ(sum, large.lookups());
  std::map<uint64_t, uint64_t> wanted = SampleOf(large);
  std::erase_if(wanted, [&](const auto& row) {
    return HeatHash(row.first) > small->last_hash();
  });
  EXPECT_EQ(SampleOf(*small), wanted);
}

TEST_F(HeatRecordingTest, OneRecordingAtATime) {
  HeatRecorder recorder;
  recorder.Record(0, {1});  // to nobody
  const auto first = std::make_shared<HeatRecording>(manifest_, 64);
  const auto second = std::make_shared<HeatRecording>(manifest_, 64);
  ASSERT_TRUE(recorder.Start(first));
  EXPECT_FALSE(recorder.Start(second));
  recorder.Record(0, {{1, 2}});
  recorder.Stop(second.get());
  recorder.Stop(nullptr);
  EXPECT_EQ(recorder.current(), first);
  recorder.Record(0, {3});
  recorder.Stop(first.get());
  EXPECT_EQ(recorder.current(), nullptr);
  recorder.Record(0, {4});
  EXPECT_EQ(first->lookups(), 3U);
  first->Add(0, {5});  // of a gather that was under way
  EXPECT_EQ(first->sampled_rows(), 3U);
  EXPECT_TRUE(recorder.Start(second));
}

// Recordings come and go under gathers.
TEST_F(HeatRecordingTest, StopsWhileThreadsCount) {
  HeatRecorder recorder;
  std::atomic<bool> ended{false};
  std::thread gathers([&] {
    while (!ended.load()) recorder.Record(1, {{1, 2, 3}});
  });
  for (int i = 0; i < 200; ++i) {
    auto heat = std::make_shared<HeatRecording>(manifest_, 64);
    ENGRAM_CHECK(recorder.Start(heat));
    ENGRAM_CHECK(test::Eventually([&] { return heat->lookups() > 0; }));
    recorder.Stop(heat.get());
    const std::map<uint64_t, uint64_t> sample = SampleOf(*heat);
    EXPECT_EQ(SampleOf(*heat), sample);
  }
  ended.store(true);
  gathers.join();
}

}  // namespace
}  // namespace engram
