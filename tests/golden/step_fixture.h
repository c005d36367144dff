#ifndef ENGRAM_TESTS_GOLDEN_STEP_FIXTURE_H_
#define ENGRAM_TESTS_GOLDEN_STEP_FIXTURE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "compute/block/engram_block.h"
#include "compute/block/local_row_source.h"
#include "core/model/checkpoint.h"
#include "core/model/number_formats.h"
#include "core/model/token_map.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_file.h"

namespace engram {

// Distance to the next value of the format, for a value of its size.
inline double UlpOf(StreamDtype dtype, double value) {
  const int exponent = value == 0 ? -126 : std::max(std::ilogb(value), -126);
  return std::ldexp(1, exponent - (dtype == StreamDtype::kBf16 ? 7 : 23));
}

inline double StreamAt(absl::Span<const std::byte> streams, StreamDtype dtype,
                       size_t i) {
  if (dtype == StreamDtype::kBf16) {
    uint16_t bits;
    std::memcpy(&bits, &streams[2 * i], sizeof(bits));
    return Bf16ToFloat(bits);
  }
  float value;
  std::memcpy(&value, &streams[4 * i], sizeof(value));
  return value;
}

// What Forward gives for a run of positions.
struct Result {
  std::vector<std::byte> streams;
  std::vector<float> gate;
  std::vector<uint16_t> value;
  std::vector<uint16_t> kv;

  void Append(const Result& more) {
    streams.insert(streams.end(), more.streams.begin(), more.streams.end());
    gate.insert(gate.end(), more.gate.begin(), more.gate.end());
    value.insert(value.end(), more.value.begin(), more.value.end());
    kv.insert(kv.end(), more.kv.begin(), more.kv.end());
  }
  friend bool operator==(const Result&, const Result&) = default;
};

// One layer of a golden file.
struct GoldenLayer {
  size_t index;
  LayerId id;
  StreamDtype dtype;
  std::vector<RowId> row_ids;
  std::vector<std::byte> streams_in;
};

// A checkpoint, its golden file and a block over them. The parameter is the
// name of both.
class GoldenStepTest : public testing::TestWithParam<std::string> {
 protected:
  GoldenStepTest()
      : golden_(absl::StrCat(GetParam(), ".golden.safetensors")),
        pool_({.thread_count = 2}) {}

  void SetUp() override {
    const std::string dir =
        absl::StrCat(ENGRAM_GOLDEN_CHECKPOINTS "/", GetParam());
    auto checkpoint = Checkpoint::Open(dir);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    checkpoint_ = std::make_shared<const Checkpoint>(*std::move(checkpoint));
    auto map = TokenMap::Load(absl::StrCat(dir, "/", kTokenMapFileName),
                              checkpoint_->config());
    ASSERT_TRUE(map.ok()) << map.status();
    auto block = EngramBlock::Create(*checkpoint_, *map, &pool_);
    ASSERT_TRUE(block.ok()) << block.status();
    block_ = *std::move(block);
    auto source = LocalRowSource::Create(checkpoint_);
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *std::move(source);
    for (const LayerLayout& layer : block_->layout().layers()) {
      AddLayer(layer.layer_id);
    }
  }

  void AddLayer(LayerId id) {
    const size_t index = layers_.size();
    const bool bf16 = golden_.LayerDtype(id, "streams_in") == "BF16";
    layers_.push_back({index, id, bf16 ? StreamDtype::kBf16 : StreamDtype::kF32,
                       golden_.RowIds(index, block_->layout().layers().size()),
                       StreamBytesOf(id, "streams_in")});
  }

  std::vector<std::byte> StreamBytesOf(LayerId id, const std::string& name) {
    std::vector<std::byte> bytes;
    const auto append = [&](const auto& values) {
      bytes.resize(values.size() * sizeof(values[0]));
      std::memcpy(bytes.data(), values.data(), bytes.size());
    };
    if (golden_.LayerDtype(id, name) == "BF16") {
      append(golden_.Layer<uint16_t>(id, name));
    } else {
      append(golden_.Layer<float>(id, name));
    }
    return bytes;
  }

  std::vector<std::byte> Fetch(LayerId layer, absl::Span<const RowId> ids) {
    std::vector<std::byte> rows(ids.size() * source_->row_format().row_bytes(),
                                std::byte{0xA5});
    absl::Status status = absl::UnknownError("done was not called");
    const auto fetch = source_->Fetch(
        layer, ids, absl::MakeSpan(rows), absl::InfiniteFuture(),
        [&status](absl::Status result) { status = std::move(result); });
    EXPECT_EQ(status, absl::OkStatus());
    return rows;
  }

  // The step of positions [first, first + count). An empty mask means that
  // all of them live.
  Result Forward(const EngramBlock& block, const GoldenLayer& layer,
                 size_t first, size_t count, absl::Span<const uint8_t> mask) {
    const EngramConfig& config = block.config();
    std::vector<RowId> live;
    for (size_t p = first; p < first + count; ++p) {
      if (!mask.empty() && mask[p] == 0) continue;
      const auto* ids = &layer.row_ids[p * config.columns()];
      live.insert(live.end(), ids, ids + config.columns());
    }
    const size_t token_bytes = layer.streams_in.size() / golden_.positions();
    Result result;
    result.streams.resize(count * token_bytes, std::byte{0xA5});
    result.gate.resize(count * config.hc_mult, -7);
    result.value.resize(count * config.dim, 0xA5A5);
    result.kv.resize(count * config.wkv_out(), 0xA5A5);
    const absl::Status status = block.Forward(
        layer.index, layer.dtype, Fetch(layer.id, live),
        absl::MakeConstSpan(layer.streams_in)
            .subspan(first * token_bytes, count * token_bytes),
        mask.empty() ? mask : mask.subspan(first, count),
        {absl::MakeSpan(result.streams), absl::MakeSpan(result.gate),
         absl::MakeSpan(result.value), absl::MakeSpan(result.kv)});
    EXPECT_EQ(status, absl::OkStatus());
    return result;
  }

  Result ForwardAll(const GoldenLayer& layer, absl::Span<const uint8_t> mask) {
    return Forward(*block_, layer, 0, golden_.positions(), mask);
  }

  // In pieces of `step` positions.
  Result ForwardBy(size_t step, const EngramBlock& block,
                   const GoldenLayer& layer) {
    Result result;
    for (size_t p = 0; p < golden_.positions(); p += step) {
      result.Append(Forward(block, layer, p,
                            std::min(step, golden_.positions() - p),
                            golden_.mask()));
    }
    return result;
  }

  const GoldenFile golden_;
  ThreadPool pool_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  std::unique_ptr<const EngramBlock> block_;
  std::unique_ptr<LocalRowSource> source_;
  std::vector<GoldenLayer> layers_;
};

}  // namespace engram

#endif  // ENGRAM_TESTS_GOLDEN_STEP_FIXTURE_H_
