// Partitions come and go in the memory of each other while threads gather: the
// promise that PartitionSet, Gatherer and HostTier keep together.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "core/wire/error_detail.h"
#include "table_server/gather/gatherer.h"
#include "table_server/tier/host_tier.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/test_table.h"

namespace engram {
namespace {

using ::engram::test::IsOk;

constexpr int kGatherThreads = 3;
constexpr int kRowsPerGather = 24;
constexpr int kRowsPerPiece = 4;
constexpr size_t kLayer = 0;
// Of them, half are held at any time.
constexpr uint32_t kPartitions = 16;
// Until there were so many of each.
constexpr int kEnough = 500;

class GatherWhileFreeingTest : public ::testing::Test {
 protected:
  GatherWhileFreeingTest() {
    auto tier = HostTier::Create(manifest_);
    EXPECT_THAT(tier, IsOk());
    tier_ = *std::move(tier);
    gatherer_.emplace(manifest_, partitions_, *tier_,
                      Gatherer::Options{.server_name = "s1"});
    for (uint32_t p = 0; p < kPartitions; ++p) {
      absent_.push_back(PartitionId{p});
      const PartitionRef ref = RefOf(PartitionId{p});
      const uint64_t rows = manifest_.RowsIn(kLayer, ref.partition);
      contents_.emplace_back(rows * tier_->row_bytes());
      test::FillWithSyntheticRows(manifest_, ref,
                                  absl::MakeSpan(contents_.back()));
    }
  }

  PartitionRef RefOf(PartitionId partition) const {
    return {manifest_.layers()[kLayer].layer_id, partition};
  }

  // A random one moves from one list to the other.
  PartitionId Move(std::vector<PartitionId>& from,
                   std::vector<PartitionId>& to) {
    std::swap(from[random_() % from.size()], from.back());
    to.push_back(from.back());
    from.pop_back();
    return to.back();
  }

  void Load() {
    const PartitionId partition = Move(absent_, held_);
    const auto memory = tier_->Allocate(kLayer, partition);
    ASSERT_THAT(memory, IsOk());
    const auto& content = contents_[ToInt(partition)];
    std::copy(content.begin(), content.end(), memory->begin());
    partitions_.Add(kLayer, partition);
  }

  void Unload() {
    const PartitionId partition = Move(held_, absent_);
    partitions_.Withdraw(kLayer, partition);
    const LeaseEpochs::Mark mark = partitions_.Drop(kLayer, partition);
    ASSERT_TRUE(partitions_.WaitUntilLeasesEnded(
        mark, absl::Now() + absl::Seconds(60)));
    tier_->Free(kLayer, partition);
    ++unloads_;
  }

  // As a call does it: checked at once, copied by and by.
  void GatherOnce(std::mt19937& random) {
    std::vector<RowId> ids(kRowsPerGather);
    // Of few partitions, so that they are often all there.
    const uint32_t first = static_cast<uint32_t>(random() % kPartitions);
    for (RowId& id : ids) {
      const uint64_t partition = (first + random() % 3) % kPartitions;
      id = static_cast<RowId>(partition * manifest_.partition_rows() +
                              random() % manifest_.partition_rows());
    }
    const LayerRowIds layer = {RefOf(PartitionId{0}).layer, ids};
    const auto checked = gatherer_->Check("", {&layer, 1});
    if (!checked.ok()) {
      EXPECT_EQ(ReasonOf(checked.status()), ErrorReason::kPartitionNotHere);
      ++refused_;
      return;
    }
    const CallGuard guard(absl::InfiniteFuture(), cancelled_, Clock::Real());
    std::string rows(kRowsPerGather * tier_->row_bytes(), '\xEE');
    const auto out =
        absl::MakeSpan(reinterpret_cast<std::byte*>(rows.data()), rows.size());
    std::vector<RowFetch> missed;
    const size_t piece_bytes = kRowsPerPiece * tier_->row_bytes();
    for (int row = 0; row < kRowsPerGather; row += kRowsPerPiece) {
      std::this_thread::yield();  // as between two pieces of a reply
      EXPECT_THAT(
          gatherer_->Copy(*checked, row,
                          out.subspan(row * tier_->row_bytes(), piece_bytes),
                          guard, missed),
          IsOk());
      ASSERT_TRUE(missed.empty());
    }
    if (rows == test::SyntheticRows(manifest_, layer.layer, ids)) {
      ++right_;
    } else {
      ++wrong_;
    }
  }

  const Manifest manifest_ = test::TinyManifest();
  PartitionSet partitions_{manifest_};
  std::unique_ptr<HostTier> tier_;
  std::optional<Gatherer> gatherer_;
  std::vector<std::vector<std::byte>> contents_;  // [partition]
  std::atomic<bool> cancelled_{false};

  // Of the thread that loads.
  std::mt19937 random_{11};
  std::vector<PartitionId> absent_;
  std::vector<PartitionId> held_;
  int unloads_ = 0;

  std::atomic<int> right_{0};
  std::atomic<int> wrong_{0};
  std::atomic<int> refused_{0};
};

TEST_F(GatherWhileFreeingTest, RowsAreRightOrRefused) {
  for (uint32_t i = 0; i < kPartitions / 2; ++i) Load();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kGatherThreads; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(static_cast<uint32_t>(i));
      while (!stop.load()) GatherOnce(random);
    });
  }
  const absl::Time deadline = absl::Now() + absl::Seconds(120);
  while (absl::Now() < deadline && wrong_.load() == 0 &&
         (unloads_ < kEnough || right_.load() < kEnough ||
          refused_.load() < kEnough)) {
    Unload();
    Load();
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong_.load(), 0);
  EXPECT_GE(unloads_, kEnough);
  EXPECT_GE(right_.load(), kEnough);
  EXPECT_GE(refused_.load(), kEnough);
  EXPECT_EQ(partitions_.held_count(kLayer), kPartitions / 2);
}

}  // namespace
}  // namespace engram
