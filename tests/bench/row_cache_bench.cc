// The hot-row cache: a hit against the plain copy of a row, what an insert
// costs, and the hit ratio against LRU of as many rows.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "core/base/check.h"
#include "core/base/page_buffer.h"
#include "core/base/prefetch.h"
#include "core/cache/row_cache.h"
#include "tests/testing/lru_rows.h"
#include "tests/testing/zipf_rows.h"

namespace engram {
namespace {

constexpr size_t kRowBytes = 264;
constexpr uint64_t kRows = 1'000'000;  // 264 MB, far above any cache
constexpr size_t kBatch = 1536;
constexpr size_t kRowsAhead = 8;
const TableKey kTable{1};

const std::vector<RowId>& RandomIds() {
  static const auto& ids = *[] {
    auto* const drawn = new std::vector<RowId>(4096 * kBatch);
    std::mt19937_64 random(1);
    for (RowId& id : *drawn) id = static_cast<RowId>(random() % kRows);
    return drawn;
  }();
  return ids;
}

// Of all ids, each thread from another place.
class Batches {
 public:
  explicit Batches(const benchmark::State& state)
      : at_(static_cast<size_t>(state.thread_index()) * 512) {}
  absl::Span<const RowId> Next() {
    return {RandomIds().data() + at_++ % 4096 * kBatch, kBatch};
  }

 private:
  size_t at_;
};

void ItemsAre(benchmark::State& state, uint64_t items_per_iteration) {
  state.SetItemsProcessed(static_cast<int64_t>(
      static_cast<uint64_t>(state.iterations()) * items_per_iteration));
}

// The bound: rows copied from random places of memory.
void BM_CopyRow(benchmark::State& state) {
  static PageBuffer& memory = *new PageBuffer([] {
    auto buffer = PageBuffer::Allocate(kRows * kRowBytes);
    ENGRAM_CHECK(buffer.ok());
    std::memset(buffer->bytes().data(), 1, kRows * kRowBytes);
    return *std::move(buffer);
  }());
  const std::byte* const rows = memory.bytes().data();
  std::vector<std::byte> out(kBatch * kRowBytes);
  Batches batches(state);
  for (auto _ : state) {
    const absl::Span<const RowId> ids = batches.Next();
    for (size_t i = 0; i < kBatch; ++i) {
      if (i + kRowsAhead < kBatch) {
        PrefetchBytes(rows + ids[i + kRowsAhead] * kRowBytes, kRowBytes);
      }
      std::memcpy(out.data() + i * kRowBytes, rows + ids[i] * kRowBytes,
                  kRowBytes);
    }
    benchmark::ClobberMemory();
  }
  ItemsAre(state, kBatch);
}
BENCHMARK(BM_CopyRow)->Threads(1)->Threads(8)->UseRealTime();

std::unique_ptr<RowCache> NewCache(uint64_t max_bytes) {
  auto cache = RowCache::Create({max_bytes, kRowBytes});
  ENGRAM_CHECK(cache.ok());
  return *std::move(cache);
}

void BM_RowCacheHit(benchmark::State& state) {
  static RowCache& cache = *[] {
    auto full = NewCache(kRows * 340);
    std::vector<RowId> ids(kBatch);
    const std::vector<std::byte> rows(kBatch * kRowBytes);
    for (uint64_t row = 0; row < kRows; row += kBatch) {
      for (size_t i = 0; i < kBatch; ++i) ids[i] = static_cast<RowId>(row + i);
      full->Insert(kTable, ids, {}, rows);
    }
    // As hot rows are: used so often that one more use is not counted.
    std::vector<std::byte> out(kBatch * kRowBytes);
    std::vector<uint32_t> misses;
    for (uint64_t row = 0; row < kRows * 3; row += kBatch) {
      for (size_t i = 0; i < kBatch; ++i) {
        ids[i] = static_cast<RowId>((row + i) % kRows);
      }
      full->Lookup(kTable, ids, {}, absl::MakeSpan(out), misses);
    }
    return full.release();
  }();
  std::vector<std::byte> out(kBatch * kRowBytes);
  std::vector<uint32_t> misses;
  Batches batches(state);
  uint64_t missed = 0;
  for (auto _ : state) {
    misses.clear();
    cache.Lookup(kTable, batches.Next(), {}, absl::MakeSpan(out), misses);
    missed += misses.size();
    benchmark::ClobberMemory();
  }
  ItemsAre(state, kBatch);
  state.counters["missed"] = benchmark::Counter(
      static_cast<double>(missed) /
          static_cast<double>(static_cast<uint64_t>(state.iterations()) *
                              kBatch),
      benchmark::Counter::kAvgThreads);
}
BENCHMARK(BM_RowCacheHit)->Threads(1)->Threads(8)->UseRealTime();

// Of a row that is not there; its bucket is looked at.
void BM_RowCacheMiss(benchmark::State& state) {
  const auto cache = NewCache(kRows * 340);
  const std::vector<std::byte> rows(kBatch * kRowBytes);
  for (uint64_t i = 0; i < RandomIds().size(); i += kBatch) {
    cache->Insert(kTable, {RandomIds().data() + i, kBatch}, {}, rows);
  }
  std::vector<std::byte> out(kBatch * kRowBytes);
  std::vector<uint32_t> misses;
  Batches batches(state);
  for (auto _ : state) {
    misses.clear();
    cache->Lookup(TableKey{2}, batches.Next(), {}, absl::MakeSpan(out), misses);
  }
  ItemsAre(state, kBatch);
}
BENCHMARK(BM_RowCacheMiss);

// Each evicts another, as most do that a gather brings.
void BM_RowCacheInsert(benchmark::State& state) {
  const auto cache = NewCache(128 << 20);
  const std::vector<std::byte> rows(kBatch * kRowBytes);
  std::vector<RowId> ids(kBatch);
  RowId next = 0;
  const auto insert = [&] {
    for (RowId& id : ids) id = next++;
    cache->Insert(kTable, ids, {}, rows);
  };
  while (cache->stats().rows < cache->stats().slots) insert();
  for (auto _ : state) insert();
  ItemsAre(state, kBatch);
}
BENCHMARK(BM_RowCacheInsert);

// Arguments: exponent in tenths, slots in thousandths of the rows.
void BM_RowCacheHitRatio(benchmark::State& state) {
  constexpr uint32_t kTableRows = 1'000'000;
  constexpr size_t kAsked = 4'000'000;
  constexpr size_t kWarm = kAsked / 2;
  const ZipfRows zipf(static_cast<double>(state.range(0)) / 10, kTableRows);
  const auto slots = static_cast<uint64_t>(state.range(1)) * kTableRows / 1000;
  const std::vector<std::byte> row(kRowBytes);
  std::vector<std::byte> out(kRowBytes);
  std::vector<uint32_t> misses;
  for (auto _ : state) {
    const auto cache = NewCache(slots * 305);
    LruRows lru(cache->stats().slots);
    std::mt19937_64 random(7);
    size_t lru_hits = 0;
    size_t hits = 0;
    for (size_t i = 0; i < kAsked; ++i) {
      const RowId id = zipf.Draw(random);
      misses.clear();
      cache->Lookup(kTable, {&id, 1}, {}, absl::MakeSpan(out), misses);
      if (!misses.empty()) cache->Insert(kTable, {&id, 1}, {}, row);
      const bool in_lru = lru.Ask(id);
      if (i < kWarm) continue;
      hits += misses.empty() ? 1 : 0;
      lru_hits += in_lru ? 1 : 0;
    }
    const double asked = kAsked - kWarm;
    state.counters["hit_ratio"] = static_cast<double>(hits) / asked;
    state.counters["lru_hit_ratio"] = static_cast<double>(lru_hits) / asked;
    state.counters["dropped"] =
        static_cast<double>(cache->stats().dropped) / kAsked;
  }
}
BENCHMARK(BM_RowCacheHitRatio)
    ->ArgsProduct({{8, 10, 12}, {10, 100}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace engram
