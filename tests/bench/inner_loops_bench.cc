// Inner loops, each at the shapes of DeepSeek-V4.1-Flash with made-up contents:
// hash, plan, gather from memory, decode, projection, gate and add.
//
//   tests/bench/run inner-loops [--benchmark_filter=REGEX ...]

#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <vector>

#include "compute/dequant/dequant.h"
#include "compute/gate/gate.h"
#include "compute/hash/ngram_hash.h"
#include "compute/project/projection.h"
#include "core/base/check.h"
#include "core/base/lease_epochs.h"
#include "core/base/thread_pool.h"
#include "core/model/layout.h"
#include "core/model/manifest.h"
#include "core/model/presets.h"
#include "core/model/token_map.h"
#include "engram_client/plan/call_rows.h"
#include "engram_client/plan/gather_plan.h"
#include "engram_client/routing/route_policy.h"
#include "engram_client/routing/routing_snapshot.h"
#include "engram_client/rpc/gather_queue.h"
#include "table_server/tier/host_tier.h"

namespace engram {
namespace {

constexpr uint64_t kPartitionRows = 1 << 16;
// Of the table that rows are gathered from: 550 MB, far above any cache.
constexpr uint32_t kTierVocabSize = 87'000;
// Soundly encoded: no NaN codes, scales around 1.
constexpr uint8_t kMaxCode = 0x7E;
constexpr uint8_t kScale = 120;

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok())
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  ENGRAM_CHECK(value.ok());
  return *std::move(value);
}

const EngramConfig& V41() {
  static const auto& config = *new EngramConfig(Must(PresetConfig("v41")));
  return config;
}

std::vector<uint32_t> RandomBelow(uint32_t limit, size_t count) {
  std::mt19937_64 random(count);
  std::uniform_int_distribution<uint32_t> values(0, limit - 1);
  std::vector<uint32_t> drawn(count);
  for (uint32_t& value : drawn) value = values(random);
  return drawn;
}

std::vector<uint8_t> RandomCodes(size_t count) {
  std::mt19937_64 random(count);
  std::vector<uint8_t> codes(count);
  for (uint8_t& code : codes) {
    const uint64_t bits = random();
    code = static_cast<uint8_t>((bits >> 8) % (kMaxCode + 1) | (bits & 0x80));
  }
  return codes;
}

// Sound packed rows.
std::vector<std::byte> RandomRows(const RowFormat& format, size_t rows) {
  const std::vector<uint8_t> codes = RandomCodes(rows * format.row_bytes());
  std::vector<std::byte> packed(codes.size());
  std::memcpy(packed.data(), codes.data(), codes.size());
  for (size_t i = 0; i < rows; ++i) {
    std::memset(packed.data() + i * format.row_bytes() + format.code_bytes(),
                kScale, format.scale_bytes());
  }
  return packed;
}

RowFormat V41RowFormat() {
  RowFormat format;
  format.width = V41().head_dim;
  return format;
}

uint32_t RowCount() { return static_cast<uint32_t>(V41().num_embeddings[0]); }

void ItemsAre(benchmark::State& state, uint64_t items_per_iteration) {
  state.SetItemsProcessed(static_cast<int64_t>(
      static_cast<uint64_t>(state.iterations()) * items_per_iteration));
}

// Both layers' 48 ids a token.
void BM_HashPerToken(benchmark::State& state) {
  const EngramLayout layout = Must(EngramLayout::Create(V41()));
  const TokenMap map = Must(TokenMap::Create(MadeUpTokenMap(V41()), V41()));
  const NgramHasher hasher = Must(NgramHasher::Create(V41(), layout, map));
  const size_t tokens = static_cast<size_t>(state.range(0));
  const std::vector<uint32_t> ids = RandomBelow(V41().vocab_size, tokens);
  const std::vector<uint32_t> lookback =
      RandomBelow(V41().vocab_size, V41().max_lookback());
  const TokenChunk chunk = {
      .start_position = 100, .tokens = ids, .lookback = lookback};
  std::vector<RowId> rows(tokens * hasher.columns());
  for (auto _ : state) {
    for (size_t layer = 0; layer < hasher.layer_count(); ++layer) {
      hasher.Hash(layer, chunk, absl::MakeSpan(rows));
      benchmark::DoNotOptimize(rows.data());
      benchmark::ClobberMemory();
    }
  }
  ItemsAre(state, tokens);
}
BENCHMARK(BM_HashPerToken)->Arg(1)->Arg(64)->Arg(4096);

// Duplicates dropped, rows split by partition.
void BM_GatherPlan(benchmark::State& state) {
  const size_t rows = static_cast<size_t>(state.range(0));
  const std::vector<RowId> ids = RandomBelow(RowCount(), rows);
  std::vector<std::byte> out(rows * V41RowFormat().row_bytes());
  const LayerGather gather = {LayerId{1}, ids, absl::MakeSpan(out)};
  for (auto _ : state) {
    const GatherPlan plan({&gather, 1}, kPartitionRows);
    benchmark::DoNotOptimize(plan.row_count());
  }
  ItemsAre(state, rows);
}
BENCHMARK(BM_GatherPlan)->Arg(24)->Arg(1536)->Arg(6144)->Arg(49152);

// V4.1 on `count` servers, each partition at two of them.
RoutingSnapshot SnapshotOf(size_t count) {
  const auto partitions =
      static_cast<uint32_t>((RowCount() - 1) / kPartitionRows + 1);
  std::vector<ServerRoute> servers(count);
  std::vector<std::shared_ptr<ServerLoad>> loads(count);
  for (auto& load : loads) load = std::make_shared<ServerLoad>();
  for (ServerRoute& server : servers) {
    server.announced = true;
    server.held.assign(V41().layer_ids.size(), PartitionBitmap(partitions));
  }
  std::mt19937_64 random(count);
  for (size_t layer = 0; layer < V41().layer_ids.size(); ++layer) {
    for (uint32_t p = 0; p < partitions; ++p) {
      const size_t first = random() % count;
      const size_t second = (first + 1 + random() % (count - 1)) % count;
      servers[first].held[layer].Set(p);
      servers[second].held[layer].Set(p);
    }
  }
  return RoutingSnapshot(std::move(servers), loads);
}

// All that a gather of both layers does between the caller's ids and the
// requests: plan, servers for its parts, calls, order of their rows.
void BM_RouteParts(benchmark::State& state) {
  static const RoutingSnapshot& snapshot = *new auto(SnapshotOf(4));
  constexpr uint64_t kMaxRowsPerCall = 32768;
  const size_t rows = static_cast<size_t>(state.range(0));
  const std::vector<RowId> ids = RandomBelow(RowCount(), rows);
  const absl::Span<const RowId> all(ids);
  const std::vector<LayerGather> layers = {
      {LayerId{1}, all.first(rows / 2), {}},
      {LayerId{14}, all.subspan(rows / 2), {}}};
  FewestRowsPolicy policy;
  for (auto _ : state) {
    const GatherPlan plan(layers, kPartitionRows);
    GatherQueue queue(kMaxRowsPerCall, {0, 1});
    queue.Add(plan.parts());
    queue.Route(snapshot, policy, absl::UnixEpoch());
    const std::vector<PlannedCall> calls = queue.TakeStartable();
    std::vector<std::vector<GatherPlan::Part>> parts;
    for (const PlannedCall& call : calls) {
      parts.push_back(PartsOf(call.segments));
    }
    const std::vector<CallRows> ordered =
        CallRows::Order(plan, std::vector<absl::Span<const GatherPlan::Part>>(
                                  parts.begin(), parts.end()));
    benchmark::DoNotOptimize(ordered.data());
  }
  ItemsAre(state, rows);
}
BENCHMARK(BM_RouteParts)->Arg(24)->Arg(6144)->Arg(49152);

// One layer of a table in host memory.
class Table {
 public:
  Table() : manifest_(MakeManifest()) {
    tier_ = Must(HostTier::Create(manifest_));
    for (uint32_t i = 0; i < manifest_.partition_count(0); ++i) {
      const auto bytes = Must(tier_->Allocate(0, PartitionId{i}));
      std::memset(bytes.data(), 1, bytes.size());
    }
  }
  const HostTier& tier() const { return *tier_; }
  uint32_t row_count() const {
    return static_cast<uint32_t>(manifest_.layers()[0].row_count);
  }

 private:
  static Manifest MakeManifest() {
    EngramConfig config = V41();
    config.engram_vocab_size = kTierVocabSize;
    config.num_embeddings.clear();
    const EngramLayout layout = Must(EngramLayout::Create(config));
    std::vector<ManifestLayer> layers;
    for (const LayerLayout& layer : layout.layers()) {
      config.num_embeddings.push_back(layer.row_count);
      layers.push_back({layer.layer_id, layer.row_count, {}});
    }
    return Must(Manifest::Create(config, V41RowFormat(), kPartitionRows,
                                 std::move(layers), "synthetic:1"));
  }

  const Manifest manifest_;
  std::unique_ptr<HostTier> tier_;
};

void BM_GatherFromMemory(benchmark::State& state) {
  static const Table& table = *new Table;
  constexpr size_t kBatches = 64;  // so that rows do not stay in a cache
  const size_t rows = static_cast<size_t>(state.range(0));
  const std::vector<RowId> ids =
      RandomBelow(table.row_count(), rows * kBatches);
  std::vector<std::byte> out(rows * table.tier().row_bytes());
  std::vector<uint32_t> misses;
  size_t batch = 0;
  for (auto _ : state) {
    const auto wanted =
        absl::MakeConstSpan(ids).subspan((batch++ % kBatches) * rows, rows);
    ENGRAM_CHECK(
        table.tier().CopyRows(0, wanted, absl::MakeSpan(out), misses).ok() &&
        misses.empty());
    benchmark::ClobberMemory();
  }
  ItemsAre(state, rows);
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(out.size()));
}
BENCHMARK(BM_GatherFromMemory)->Arg(24)->Arg(1536)->Arg(6144)->Arg(49152);

// What each gather pays for partitions that may go while it copies.
void BM_Lease(benchmark::State& state) {
  static LeaseEpochs& leases = *new LeaseEpochs;
  for (auto _ : state) {
    LeaseEpochs::Lease lease = leases.Take();
    benchmark::DoNotOptimize(lease);
  }
}
BENCHMARK(BM_Lease)->Threads(1)->Threads(2);

void BM_DecodeRowsBf16(benchmark::State& state) {
  const RowFormat format = V41RowFormat();
  const size_t rows = static_cast<size_t>(state.range(0)) * V41().columns();
  const std::vector<std::byte> packed = RandomRows(format, rows);
  std::vector<uint16_t> out(rows * format.width);
  for (auto _ : state) {
    DecodeRowsBf16(format, packed, absl::MakeSpan(out));
    benchmark::ClobberMemory();
  }
  ItemsAre(state, rows);
}
BENCHMARK(BM_DecodeRowsBf16)->Arg(1)->Arg(64);

void BM_DecodeRowsForProjection(benchmark::State& state) {
  const RowFormat format = V41RowFormat();
  const size_t rows = static_cast<size_t>(state.range(0)) * V41().columns();
  const std::vector<std::byte> packed = RandomRows(format, rows);
  std::vector<float> out(rows * format.width);
  for (auto _ : state) {
    DecodeRowsForProjection(format, packed, absl::MakeSpan(out));
    benchmark::ClobberMemory();
  }
  ItemsAre(state, rows);
}
BENCHMARK(BM_DecodeRowsForProjection)->Arg(1)->Arg(64);

// On all cores. Items are tokens.
void BM_Projection(benchmark::State& state) {
  static ThreadPool& pool = *new ThreadPool({.thread_count = 0});
  static const Projection& projection = *[] {
    const uint32_t in = V41().wkv_in();
    const uint32_t out = V41().wkv_out();
    const std::vector<uint8_t> codes = RandomCodes(size_t{in} * out);
    const std::vector<uint8_t> scales(size_t{(out + 31) / 32} * (in / 32),
                                      kScale);
    return Must(Projection::Create({in, out, codes, scales}, &pool)).release();
  }();
  const size_t tokens = static_cast<size_t>(state.range(0));
  const RowFormat format = V41RowFormat();
  const std::vector<std::byte> packed =
      RandomRows(format, tokens * V41().columns());
  std::vector<float> rows(tokens * projection.in());
  DecodeRowsForProjection(format, packed, absl::MakeSpan(rows));
  std::vector<uint16_t> kv(tokens * projection.out());
  for (auto _ : state) {
    projection.Project(rows, absl::MakeSpan(kv), &pool);
    benchmark::ClobberMemory();
  }
  ItemsAre(state, tokens);
  state.counters["GFLOP/s"] = benchmark::Counter(
      2e-9 * static_cast<double>(tokens) * projection.in() * projection.out(),
      benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(BM_Projection)
    ->Arg(1)
    ->Arg(4)
    ->Arg(16)
    ->Arg(64)
    ->Arg(256)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// bf16 streams, on one core. Items are tokens.
void BM_GateAndAdd(benchmark::State& state) {
  const size_t tokens = static_cast<size_t>(state.range(0));
  const size_t features = size_t{V41().hc_mult} * V41().dim;
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  const auto bf16 = [&](size_t count) {
    std::vector<uint16_t> values(count);
    for (uint16_t& value : values) {
      const float drawn = normal(random);
      uint32_t bits = 0;
      std::memcpy(&bits, &drawn, sizeof(bits));
      value = static_cast<uint16_t>(bits >> 16);
    }
    return values;
  };
  GateWeights weights = {.hc_mult = V41().hc_mult,
                         .dim = V41().dim,
                         .norm_eps = static_cast<float>(V41().norm_eps),
                         .weight = std::vector<float>(features, 0.01F)};
  const std::vector<uint16_t> streams = bf16(tokens * features);
  const std::vector<uint16_t> kv = bf16(tokens * V41().wkv_out());
  const absl::Span<const std::byte> in(
      reinterpret_cast<const std::byte*>(streams.data()), streams.size() * 2);
  std::vector<float> gate(tokens * V41().hc_mult);
  std::vector<std::byte> out(in.size());
  for (auto _ : state) {
    ComputeGate(weights, StreamDtype::kBf16, in, kv, {}, absl::MakeSpan(gate));
    AddContribution(weights, StreamDtype::kBf16, in, kv, gate, {},
                    absl::MakeSpan(out));
    benchmark::ClobberMemory();
  }
  ItemsAre(state, tokens);
}
BENCHMARK(BM_GateAndAdd)->Arg(1)->Arg(16)->Arg(256);

}  // namespace
}  // namespace engram
