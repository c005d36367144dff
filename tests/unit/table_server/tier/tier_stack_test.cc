#include "table_server/tier/tier_stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/base/check.h"
#include "table_server/store/fake_local_store.h"
#include "table_server/store/flat_store.h"
#include "tests/testing/eventually.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/table_server/tier/row_tier_contract.h"

namespace engram {
namespace {

using ::engram::test::AllPartitions;
using ::engram::test::BytesOf;
using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::engram::test::ReadRows;
using ::engram::test::SyntheticPartition;
using ::engram::test::SyntheticRows;
using ::engram::test::TierCase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A stack and its parts, empty.
struct Stack {
  // `cache_bytes` 0: no cache.
  Stack(const Manifest& of, uint64_t cache_bytes) : manifest(of), store(of) {
    host = *HostTier::Create(manifest);
    if (cache_bytes > 0) {
      cache = *RowCache::Create(
          {.max_bytes = cache_bytes, .row_bytes = host->row_bytes()});
    }
    tier = *TierStack::Create(manifest, {.host = host.get(),
                                         .cache = cache.get(),
                                         .store = &store,
                                         .damaged = &damaged});
  }

  void PutInHost(const PartitionRef& ref) {
    const auto bytes =
        host->Allocate(*manifest.IndexOf(ref.layer), ref.partition);
    ASSERT_THAT(bytes, IsOk());
    test::FillWithSyntheticRows(manifest, ref, *bytes);
  }
  void PutInStore(const PartitionRef& ref) {
    std::string rows = SyntheticPartition(manifest, ref);
    ASSERT_THAT(store.Put(ref, BytesOf(rows)), IsOk());
  }

  const Manifest& manifest;
  FakeLocalStore store;
  DamagedCopies damaged;
  std::unique_ptr<HostTier> host;
  std::unique_ptr<RowCache> cache;
  std::unique_ptr<TierStack> tier;
};

// Of every `host_every` partitions one is in memory, the others are cold.
std::shared_ptr<const RowTier> MakeStack(const Manifest& manifest,
                                         uint64_t cache_bytes,
                                         uint32_t host_every) {
  const auto stack = std::make_shared<Stack>(manifest, cache_bytes);
  for (const PartitionRef& ref : AllPartitions(manifest)) {
    if (ToInt(ref.partition) % host_every == 0) {
      stack->PutInHost(ref);
    } else {
      stack->PutInStore(ref);
    }
  }
  return {stack, stack->tier.get()};
}

constexpr uint64_t kTinyCache = 32 << 10;
constexpr uint64_t kLargeCache = 64 << 20;

// The same over a store on disk.
struct DiskStack {
  explicit DiskStack(const Manifest& manifest) {
    host = *HostTier::Create(manifest);
    store = *FlatStore::Open(manifest, {.dir = dir.path()});
    cache = *RowCache::Create(
        {.max_bytes = kTinyCache, .row_bytes = host->row_bytes()});
    tier = *TierStack::Create(
        manifest,
        {.host = host.get(), .cache = cache.get(), .store = store.get()});
    for (const PartitionRef& ref : AllPartitions(manifest)) {
      std::string rows = SyntheticPartition(manifest, ref);
      EXPECT_THAT(store->Put(ref, BytesOf(rows)), IsOk());
    }
  }

  const test::TempDir dir;
  std::unique_ptr<FlatStore> store;
  std::unique_ptr<HostTier> host;
  std::unique_ptr<RowCache> cache;
  std::unique_ptr<TierStack> tier;
};

std::shared_ptr<const RowTier> MakeDiskStack(const Manifest& manifest) {
  const auto stack = std::make_shared<DiskStack>(manifest);
  return {stack, stack->tier.get()};
}

}  // namespace

namespace test {

INSTANTIATE_TEST_SUITE_P(
    Stacks, RowTierContract,
    ::testing::Values(
        TierCase{"AllInMemory",
                 [](const Manifest& m) { return MakeStack(m, 0, 1); }},
        TierCase{"WithoutCache",
                 [](const Manifest& m) { return MakeStack(m, 0, 3); }},
        TierCase{"TinyCache",
                 [](const Manifest& m) { return MakeStack(m, kTinyCache, 3); }},
        TierCase{
            "LargeCache",
            [](const Manifest& m) { return MakeStack(m, kLargeCache, 3); }},
        TierCase{"AllOnDisk", MakeDiskStack},
        TierCase{"AllCold",
                 [](const Manifest& m) {
                   return MakeStack(m, kTinyCache, 1u << 30);
                 }}),
    [](const auto& info) { return info.param.name; });

}  // namespace test

namespace {

class TierStackTest : public ::testing::Test {
 protected:
  RowId Row(uint32_t partition, uint32_t row) const {
    return static_cast<RowId>(partition * manifest_.partition_rows() + row);
  }
  PartitionRef Ref(uint32_t partition) const {
    return {manifest_.layers()[0].layer_id, PartitionId{partition}};
  }
  std::string Wanted(const std::vector<RowId>& ids) const {
    return SyntheticRows(manifest_, manifest_.layers()[0].layer_id, ids);
  }
  absl::Status Read(const Stack& stack, const std::vector<RowId>& ids,
                    bool is_scan = false) {
    out_.assign(ids.size() * stack.tier->row_bytes(), '\xEE');
    return ReadRows(*stack.tier, 0, ids, BytesOf(out_), is_scan);
  }

  const Manifest manifest_ = test::TinyManifest();
  std::string out_;
};

TEST_F(TierStackTest, EachTierIsAskedForWhatTheOneBeforeMissed) {
  Stack stack(manifest_, kLargeCache);
  stack.PutInHost(Ref(0));
  stack.PutInStore(Ref(1));
  const std::vector<RowId> first = {Row(1, 5), Row(0, 1), Row(1, 6)};
  std::string out(first.size() * stack.tier->row_bytes(), '\xEE');
  std::vector<uint32_t> misses;
  ASSERT_THAT(stack.tier->CopyRows(0, first, BytesOf(out), misses), IsOk());
  EXPECT_THAT(misses, ElementsAre(0, 2));
  ASSERT_THAT(Read(stack, first), IsOk());
  EXPECT_EQ(out_, Wanted(first));
  EXPECT_EQ(stack.store.fetched_rows(), 2U);

  const std::vector<RowId> second = {Row(0, 2), Row(1, 7), Row(1, 6), Row(1, 8),
                                     Row(1, 5)};
  misses.clear();
  out.assign(second.size() * stack.tier->row_bytes(), '\xEE');
  ASSERT_THAT(stack.tier->CopyRows(0, second, BytesOf(out), misses), IsOk());
  EXPECT_THAT(misses, ElementsAre(1, 3));
  ASSERT_THAT(Read(stack, second), IsOk());
  EXPECT_EQ(out_, Wanted(second));
  EXPECT_EQ(stack.store.fetched_rows(), 4U);
  EXPECT_EQ(stack.tier->stats().fetches, 2U);
  EXPECT_EQ(stack.tier->stats().fetched_rows, 4U);
  EXPECT_EQ(stack.tier->stats().failed_fetches, 0U);
  EXPECT_GE(stack.tier->memory_bytes(),
            stack.host->memory_bytes() + stack.cache->stats().bytes);
}

TEST_F(TierStackTest, AScanLeavesNothingInTheCacheAndAsksItForNothing) {
  Stack stack(manifest_, kLargeCache);
  stack.PutInStore(Ref(1));
  ASSERT_THAT(Read(stack, {Row(1, 3)}), IsOk());
  const RowCache::Stats before = stack.cache->stats();
  ASSERT_THAT(Read(stack, {Row(1, 3), Row(1, 2)}, /*is_scan=*/true), IsOk());
  EXPECT_EQ(out_, Wanted({Row(1, 3), Row(1, 2)}));
  EXPECT_EQ(stack.cache->stats().hits, before.hits);
  EXPECT_EQ(stack.cache->stats().misses, before.misses);
  EXPECT_EQ(stack.cache->stats().inserts, before.inserts);
}

TEST_F(TierStackTest, RowsThatCouldNotBeReadAreNotCached) {
  Stack stack(manifest_, kLargeCache);
  stack.PutInStore(Ref(1));
  stack.PutInStore(Ref(2));
  stack.store.Damage(Ref(1));
  EXPECT_THAT(Read(stack, {Row(2, 1), Row(1, 1)}),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("page 1")));
  EXPECT_THAT(stack.damaged.List(), ElementsAre(Ref(1)));
  EXPECT_EQ(stack.cache->stats().inserts, 0U);
  EXPECT_EQ(stack.tier->stats().failed_fetches, 1U);
  EXPECT_THAT(Read(stack, {Row(2, 1)}), IsOk());
  EXPECT_EQ(out_, Wanted({Row(2, 1)}));
  stack.PutInStore(Ref(1));
  ASSERT_THAT(Read(stack, {Row(1, 1)}), IsOk());
  EXPECT_EQ(out_, Wanted({Row(1, 1)}));
}

TEST_F(TierStackTest, ATinyCacheEvictsAndEveryRowIsRight) {
  Stack stack(manifest_, kTinyCache);
  for (uint32_t p = 0; p < 4; ++p) stack.PutInStore(Ref(p));
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<RowId> ids(20);
    for (RowId& id : ids) {
      id = Row(random() % 4,
               static_cast<uint32_t>(random() % manifest_.partition_rows()));
    }
    ASSERT_THAT(Read(stack, ids), IsOk());
    ASSERT_EQ(out_, Wanted(ids));
  }
  EXPECT_GT(stack.cache->stats().evictions, 0U);
  EXPECT_LE(stack.cache->stats().bytes, kTinyCache);
}

// What is cached stays right: rows of a version never change.
TEST_F(TierStackTest, APartitionMovesBetweenTiersAndGoesAndComesBack) {
  Stack stack(manifest_, kLargeCache);
  const std::vector<RowId> ids = {Row(1, 3), Row(1, 4)};
  stack.PutInStore(Ref(1));
  ASSERT_THAT(Read(stack, ids), IsOk());
  EXPECT_EQ(out_, Wanted(ids));
  ASSERT_THAT(stack.store.Remove(Ref(1)), IsOk());  // given up
  EXPECT_THAT(Read(stack, {Row(1, 9)}),
              IsError(absl::StatusCode::kNotFound, HasSubstr("file")));
  stack.PutInHost(Ref(1));  // loaded again, into memory
  ASSERT_THAT(Read(stack, {Row(1, 3), Row(1, 9)}), IsOk());
  EXPECT_EQ(out_, Wanted({Row(1, 3), Row(1, 9)}));
  stack.host->Free(0, PartitionId{1});
  stack.PutInStore(Ref(1));  // and cold again
  ASSERT_THAT(Read(stack, {Row(1, 9), Row(1, 3)}), IsOk());
  EXPECT_EQ(out_, Wanted({Row(1, 9), Row(1, 3)}));
}

// Readers go on over partitions of which one is in memory, one is cold, and one
// is freed, put elsewhere and published again all the time.
TEST_F(TierStackTest, PartitionsComeAndGoWhileOthersAreRead) {
  Stack stack(manifest_, kTinyCache);
  PartitionSet partitions(manifest_);
  stack.PutInHost(Ref(0));
  stack.PutInStore(Ref(1));
  stack.PutInStore(Ref(2));
  for (uint32_t p = 0; p < 3; ++p) partitions.Add(0, PartitionId{p});
  std::atomic<bool> stop{false};
  std::atomic<int> right{0};
  const auto read = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::string out(8 * stack.tier->row_bytes(), '\xEE');
    while (!stop.load()) {
      std::vector<RowId> ids(8);
      for (RowId& id : ids) id = Row(random() % 3, random() % 64);
      const LeaseEpochs::Lease lease = partitions.TakeLease();
      if (!partitions.Holds(0, 2)) continue;
      EXPECT_THAT(ReadRows(*stack.tier, 0, ids, BytesOf(out)), IsOk());
      EXPECT_EQ(out, Wanted(ids));
      right.fetch_add(1);
    }
  };
  std::vector<std::thread> readers;
  for (unsigned t = 0; t < 3; ++t) readers.emplace_back(read, t);
  const absl::Time give_up = test::Soon();
  for (int round = 0;
       round < 100 || (right.load() < 100 && absl::Now() < give_up); ++round) {
    partitions.Withdraw(0, PartitionId{2});
    const LeaseEpochs::Mark mark = partitions.Drop(0, PartitionId{2});
    ENGRAM_CHECK(partitions.WaitUntilLeasesEnded(mark, test::Soon()));
    if (stack.host->IsAllocated(0, PartitionId{2})) {
      stack.host->Free(0, PartitionId{2});
      stack.PutInStore(Ref(2));
    } else {
      EXPECT_THAT(stack.store.Remove(Ref(2)), IsOk());
      stack.PutInHost(Ref(2));
    }
    partitions.Add(0, PartitionId{2});
    std::this_thread::yield();
  }
  stop.store(true);
  for (std::thread& reader : readers) reader.join();
  EXPECT_GE(right.load(), 100);
}

}  // namespace
}  // namespace engram
