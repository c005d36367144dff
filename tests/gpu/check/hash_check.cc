// The hash on the device against the goldens and against NgramHasher.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compute/hash/flat_tokens.h"
#include "compute/hash/gpu_hasher.h"
#include "compute/hash/ngram_hash.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/layout.h"
#include "core/model/presets.h"
#include "core/model/token_map.h"
#include "tests/gpu/check/checks.h"
#include "tests/gpu/check/gpu_arrays.h"
#include "tests/gpu/check/gpu_timer.h"
#include "tests/gpu/check/random_inputs.h"
#include "tests/testing/golden_file.h"

namespace engram::gpu_check {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFF;
constexpr size_t kGuardIds = 64;

// Both hashers of one model.
struct Hashers {
  EngramConfig config;
  NgramHasher cpu;
  GpuHasher gpu;
  size_t layers = 0;
};

absl::StatusOr<Hashers> MakeHashers(const EngramConfig& config,
                                    std::vector<int32_t> token_map) {
  ENGRAM_ASSIGN_OR_RETURN(const EngramLayout layout,
                          EngramLayout::Create(config));
  ENGRAM_ASSIGN_OR_RETURN(const TokenMap map,
                          TokenMap::Create(std::move(token_map), config));
  ENGRAM_ASSIGN_OR_RETURN(NgramHasher cpu,
                          NgramHasher::Create(config, layout, map));
  ENGRAM_ASSIGN_OR_RETURN(GpuHasher gpu,
                          GpuHasher::Create(config, layout, map));
  return Hashers{config, std::move(cpu), std::move(gpu),
                 layout.layers().size()};
}

// A batch on the device.
struct DeviceBatch {
  DeviceBuffer ids;
  DeviceBuffer positions;
  DeviceBuffer row_ids;  // and a guard
  DeviceBuffer first_bad;
  HashBatch batch;
};

absl::StatusOr<DeviceBatch> MakeBatch(const Hashers& hashers,
                                      const std::vector<uint32_t>& ids,
                                      const std::vector<uint32_t>& positions) {
  DeviceBatch made;
  ENGRAM_ASSIGN_OR_RETURN(made.ids, Upload(ids));
  ENGRAM_ASSIGN_OR_RETURN(made.positions, Upload(positions));
  const size_t count =
      hashers.layers * positions.size() * hashers.config.columns();
  ENGRAM_ASSIGN_OR_RETURN(
      made.row_ids,
      AllocatePoisoned((count + kGuardIds) * sizeof(uint32_t), 0xA5));
  ENGRAM_ASSIGN_OR_RETURN(made.first_bad,
                          AllocatePoisoned(sizeof(uint32_t), 0xFF));
  made.batch.ids = made.ids.as<uint32_t>();
  made.batch.positions = made.positions.as<uint32_t>();
  made.batch.slot_count = static_cast<uint32_t>(ids.size());
  made.batch.token_count = static_cast<uint32_t>(positions.size());
  made.batch.row_ids = made.row_ids.as<uint32_t>();
  made.batch.first_bad = made.first_bad.as<uint32_t>();
  return made;
}

struct HashResult {
  std::vector<uint32_t> row_ids;  // [layers, tokens, columns]
  uint32_t first_bad = kNone;
};

absl::StatusOr<HashResult> RunHash(GpuContext& context, const Hashers& hashers,
                                   const std::vector<uint32_t>& ids,
                                   const std::vector<uint32_t>& positions) {
  ENGRAM_ASSIGN_OR_RETURN(const DeviceBatch made,
                          MakeBatch(hashers, ids, positions));
  ENGRAM_RETURN_IF_ERROR(
      hashers.gpu.Hash(made.batch, context.stream().handle()));
  ENGRAM_RETURN_IF_ERROR(context.stream().Synchronize());
  const size_t count =
      hashers.layers * positions.size() * hashers.config.columns();
  HashResult result;
  ENGRAM_ASSIGN_OR_RETURN(result.row_ids,
                          Download<uint32_t>(made.row_ids, count + kGuardIds));
  for (size_t i = count; i < result.row_ids.size(); ++i) {
    if (result.row_ids[i] != 0xA5A5A5A5) {
      return absl::DataLossError("row ids past the end were written");
    }
  }
  result.row_ids.resize(count);
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<uint32_t> bad,
                          Download<uint32_t>(made.first_bad, 1));
  result.first_bad = bad[0];
  return result;
}

// Chunks on the device against `wanted`, [layers, tokens, columns].
absl::Status CompareChunks(GpuContext& context, const Hashers& hashers,
                           absl::Span<const TokenChunk> chunks,
                           const std::vector<uint32_t>& wanted) {
  const uint32_t lookback = hashers.config.max_lookback();
  const FlatSizes sizes = FlatSizesOf(chunks, lookback);
  std::vector<uint32_t> ids(sizes.slots);
  std::vector<uint32_t> positions(sizes.tokens);
  FlattenTokens(chunks, lookback, absl::MakeSpan(ids),
                absl::MakeSpan(positions));
  ENGRAM_ASSIGN_OR_RETURN(const HashResult got,
                          RunHash(context, hashers, ids, positions));
  if (got.first_bad != kNone) {
    return absl::DataLossError(
        absl::StrCat("token ", got.first_bad, " is reported as bad"));
  }
  const auto differ = std::mismatch(got.row_ids.begin(), got.row_ids.end(),
                                    wanted.begin(), wanted.end());
  if (differ.first == got.row_ids.end()) return absl::OkStatus();
  const size_t at = differ.first - got.row_ids.begin();
  const size_t columns = hashers.config.columns();
  return absl::DataLossError(
      absl::StrCat("layer index ", at / columns / positions.size(), ", token ",
                   at / columns % positions.size(), ", column ", at % columns,
                   ": row ", *differ.first, " instead of ", *differ.second));
}

absl::Status CompareGoldenHashes(GpuContext& context, const Hashers& hashers,
                                 const test::GoldenFile& golden) {
  std::vector<uint32_t> wanted;
  for (size_t layer = 0; layer < hashers.layers; ++layer) {
    const std::vector<RowId> ids = golden.RowIds(layer, hashers.layers);
    wanted.insert(wanted.end(), ids.begin(), ids.end());
  }
  for (const std::vector<size_t>& lengths : golden.Splits()) {
    std::vector<TokenChunk> chunks;
    for (const test::GoldenChunk& part :
         golden.Chunks(lengths, hashers.config.max_lookback())) {
      chunks.push_back(part.chunk);
    }
    ENGRAM_RETURN_IF_ERROR(
        Annotate(CompareChunks(context, hashers, chunks, wanted),
                 absl::StrCat("in ", chunks.size(), " chunks")));
  }
  return absl::OkStatus();
}

// Chunks of random lengths and places, some with masks.
absl::Status CompareRandomHashes(GpuContext& context, const Hashers& hashers,
                                 size_t tokens, Random& random) {
  struct Storage {
    std::vector<uint32_t> tokens;
    std::vector<uint8_t> mask;
    uint32_t back = 0;
  };
  const uint32_t most_back = hashers.config.max_lookback();
  std::vector<Storage> storage;
  std::vector<TokenChunk> chunks;
  for (size_t done = 0; done < tokens;) {
    Storage& one = storage.emplace_back();
    const size_t length =
        std::min<size_t>(1 + random.Below(300), tokens - done);
    const uint64_t start = random.OneIn(3) ? random.Below(5) : 1000;
    one.back = static_cast<uint32_t>(std::min<uint64_t>(start, most_back));
    for (size_t i = 0; i < one.back + length; ++i) {
      one.tokens.push_back(random.Below(hashers.config.vocab_size));
    }
    if (random.OneIn(2)) one.mask = RandomMask(random, one.tokens.size(), 8);
    TokenChunk& chunk = chunks.emplace_back();
    chunk.start_position = start;
    done += length;
  }
  std::vector<uint32_t> wanted;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const auto all = absl::MakeConstSpan(storage[i].tokens);
    const auto mask = absl::MakeConstSpan(storage[i].mask);
    chunks[i].lookback = all.first(storage[i].back);
    chunks[i].tokens = all.subspan(storage[i].back);
    if (mask.empty()) continue;
    chunks[i].lookback_mask = mask.first(storage[i].back);
    chunks[i].mask = mask.subspan(storage[i].back);
  }
  for (size_t layer = 0; layer < hashers.layers; ++layer) {
    for (const TokenChunk& chunk : chunks) {
      ENGRAM_RETURN_IF_ERROR(hashers.cpu.Check(chunk));
      std::vector<RowId> ids(chunk.tokens.size() * hashers.config.columns());
      hashers.cpu.Hash(layer, chunk, absl::MakeSpan(ids));
      wanted.insert(wanted.end(), ids.begin(), ids.end());
    }
  }
  return Annotate(CompareChunks(context, hashers, chunks, wanted),
                  absl::StrCat(tokens, " random tokens"));
}

// The lowest token whose n-grams have an id that is none is reported.
absl::Status CompareBadIds(GpuContext& context, const Hashers& hashers,
                           Random& random) {
  const uint32_t back = hashers.config.max_lookback();
  std::vector<uint32_t> ids(back + 100);
  for (uint32_t& id : ids) id = random.Below(hashers.config.vocab_size);
  std::vector<uint32_t> positions(100);
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = back + i;
  ids[back + 40] = hashers.config.vocab_size;
  ids[back + 70] = 0x7FFFFFFF;
  ENGRAM_ASSIGN_OR_RETURN(const HashResult got,
                          RunHash(context, hashers, ids, positions));
  if (got.first_bad == 40) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("token 40 has no id, ", got.first_bad, " is reported"));
}

absl::StatusOr<Hashers> PresetHashers(absl::string_view preset) {
  ENGRAM_ASSIGN_OR_RETURN(const EngramConfig config, PresetConfig(preset));
  return MakeHashers(config, MadeUpTokenMap(config));
}

}  // namespace

absl::StatusOr<Outcome> CheckHash(GpuContext& context) {
  const std::string golden_dir = absl::StrCat(context.options().data_dir, "/");
  size_t tokens = 0;
  for (const char* preset : {"v41", "tiny", "odd", "tiny-scale"}) {
    const bool v41 = preset == std::string("v41");
    ENGRAM_ASSIGN_OR_RETURN(
        const test::GoldenFile golden,
        test::GoldenFile::Open(absl::StrCat(
            golden_dir, preset, v41 ? ".hash" : ".golden", ".safetensors")));
    ENGRAM_ASSIGN_OR_RETURN(const Hashers hashers, PresetHashers(preset));
    ENGRAM_RETURN_IF_ERROR(
        Annotate(CompareGoldenHashes(context, hashers, golden), preset));
    Random random(context.seed());
    for (const size_t count : {1, 5, 64, context.quick() ? 257 : 4099}) {
      ENGRAM_RETURN_IF_ERROR(Annotate(
          CompareRandomHashes(context, hashers, count, random), preset));
      tokens += count;
    }
    ENGRAM_RETURN_IF_ERROR(
        Annotate(CompareBadIds(context, hashers, random), preset));
    tokens += golden.positions() * golden.Splits().size();
  }
  return Passed(absl::StrCat(tokens,
                             " tokens of 4 models, all layers, equal "
                             "to the goldens and to NgramHasher"));
}

absl::StatusOr<Outcome> TimeHash(GpuContext& context) {
  constexpr size_t kSets = 4;
  ENGRAM_ASSIGN_OR_RETURN(const double copy_rate, context.CopyRate());
  ENGRAM_ASSIGN_OR_RETURN(const Hashers hashers, PresetHashers("v41"));
  const uint32_t back = hashers.config.max_lookback();
  Random random(context.seed());
  for (const size_t tokens :
       {context.Sized<size_t>(64, 8), context.Sized<size_t>(4096, 64)}) {
    std::vector<DeviceBatch> batches;
    for (size_t set = 0; set < kSets; ++set) {
      std::vector<uint32_t> ids(back + tokens);
      std::vector<uint32_t> positions(tokens);
      for (uint32_t& id : ids) id = random.Below(hashers.config.vocab_size);
      for (size_t i = 0; i < tokens; ++i) {
        positions[i] = static_cast<uint32_t>(back + i);
      }
      ENGRAM_ASSIGN_OR_RETURN(batches.emplace_back(),
                              MakeBatch(hashers, ids, positions));
    }
    const TimingPlan plan = context.Plan(kSets);
    ENGRAM_ASSIGN_OR_RETURN(
        const Timed timed,
        TimeLaunches(context.stream(), plan,
                     [&](size_t set, GpuStreamHandle stream) {
                       return hashers.gpu.Hash(batches[set].batch, stream);
                     }));
    const double bytes_a_token =
        4.0 * (2 + hashers.layers * hashers.config.columns());
    context.report().AddRate(
        FigureOf(absl::StrCat("hash ", tokens, " tokens, 2 layers"), timed,
                 bytes_a_token * static_cast<double>(tokens), "B",
                 kCopyCeiling),
        copy_rate, std::nullopt);
  }
  return Passed("48 ids a token");
}

}  // namespace engram::gpu_check
