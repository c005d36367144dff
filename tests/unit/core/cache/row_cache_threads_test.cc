#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/cache/row_cache.h"
#include "tests/testing/zipf_rows.h"
#include "tests/unit/core/cache/made_up_rows.h"

namespace engram {
namespace {

constexpr size_t kRowBytes = 264;
constexpr size_t kThreads = 8;
constexpr size_t kBatch = 16;
constexpr uint32_t kTableRows = 4096;

// In all; ENGRAM_CACHE_LOOKUPS asks for more.
size_t Lookups() {
  const char* const wanted = std::getenv("ENGRAM_CACHE_LOOKUPS");
  return wanted == nullptr ? 2'000'000 : std::strtoull(wanted, nullptr, 10);
}

// Asks for batches and takes in what is missing, as a client does.
class Asker {
 public:
  Asker(RowCache* cache, uint64_t seed)
      : cache_(*cache),
        tables_{*cache->KeyOf("a", LayerId{1}), *cache->KeyOf("b", LayerId{1})},
        random_(seed),
        out_(kBatch * kRowBytes) {}

  // How many were wrong.
  uint64_t Ask(const ZipfRows& zipf) {
    const TableKey table = tables_[random_() % 2];
    ids_.resize(kBatch);
    for (RowId& id : ids_) id = zipf.Draw(random_);
    misses_.clear();
    cache_.Lookup(table, ids_, {}, absl::MakeSpan(out_), misses_);
    const std::vector<std::byte> wanted = MadeUpRows(table, ids_, kRowBytes);
    uint64_t wrong = 0;
    size_t miss = 0;
    for (uint32_t i = 0; i < kBatch; ++i) {
      if (miss < misses_.size() && misses_[miss] == i) {
        ++miss;
      } else if (std::memcmp(&out_[i * kRowBytes], &wanted[i * kRowBytes],
                             kRowBytes) != 0) {
        ++wrong;
      }
    }
    std::vector<RowId> missed;
    for (const uint32_t index : misses_) missed.push_back(ids_[index]);
    if (!missed.empty()) cache_.Insert(table, missed, misses_, wanted);
    return wrong;
  }

 private:
  RowCache& cache_;
  const std::array<TableKey, 2> tables_;
  std::mt19937_64 random_;
  std::vector<std::byte> out_;
  std::vector<RowId> ids_;
  std::vector<uint32_t> misses_;
};

// A slot is written anew all the time, often while others read it.
TEST(RowCacheThreadsTest, SixtyFourSlotsGiveNoWrongRow) {
  auto cache = RowCache::Create({23'700, kRowBytes});
  ASSERT_TRUE(cache.ok()) << cache.status();
  ASSERT_GE((*cache)->stats().slots, 60u);
  ASSERT_LE((*cache)->stats().slots, 68u);
  const ZipfRows zipf(1.0, kTableRows);
  const size_t batches = Lookups() / kThreads / kBatch;
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Asker asker(cache->get(), i);
      for (size_t batch = 0; batch < batches; ++batch) {
        wrong += asker.Ask(zipf);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  const RowCache::Stats stats = (*cache)->stats();
  EXPECT_EQ(stats.hits + stats.misses, batches * kThreads * kBatch);
  EXPECT_EQ(stats.inserts - stats.evictions, stats.rows);
  EXPECT_GT(stats.hits, stats.misses / 10);
  EXPECT_GT(stats.evictions, 1000u);
  RecordProperty("hits", std::to_string(stats.hits));
  RecordProperty("evictions", std::to_string(stats.evictions));
  RecordProperty("dropped", std::to_string(stats.dropped));
}

}  // namespace
}  // namespace engram
