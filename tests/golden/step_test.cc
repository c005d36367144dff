// The whole step of one layer against the oracle's golden files, by the two
// comparisons that the square root near dot = 0 and sums that cancel call for:
// from our own kv closely, against the golden within what kv may differ by.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "compute/dequant/dequant.h"
#include "core/model/number_formats.h"
#include "gtest/gtest.h"
#include "tests/golden/hash_sequences.h"
#include "tests/golden/step_fixture.h"

namespace engram {
namespace {

TEST_P(GoldenStepTest, RowIdsForAnySplitIntoChunks) {
  const std::vector<std::vector<size_t>> splits = {
      golden_.chunks(),
      {golden_.length()},
      std::vector<size_t>(golden_.length(), 1)};
  for (const GoldenLayer& layer : layers_) {
    for (const std::vector<size_t>& chunks : splits) {
      EXPECT_EQ(HashSequences(block_->hasher(), layer.index, golden_,
                              block_->config().max_lookback(), chunks),
                layer.row_ids);
    }
  }
}

TEST_P(GoldenStepTest, RowsAreExact) {
  for (const GoldenLayer& layer : layers_) {
    const auto packed = Fetch(layer.id, layer.row_ids);
    std::vector<uint16_t> rows(golden_.positions() * block_->config().wkv_in());
    DecodeRowsBf16(block_->row_format(), packed, absl::MakeSpan(rows));
    EXPECT_EQ(rows, golden_.Layer<uint16_t>(layer.id, "rows"));
  }
}

TEST_P(GoldenStepTest, RequantisedRowsAreExact) {
  for (const GoldenLayer& layer : layers_) {
    const auto packed = Fetch(layer.id, layer.row_ids);
    std::vector<float> rows(golden_.positions() * block_->config().wkv_in());
    DecodeRowsForProjection(block_->row_format(), packed, absl::MakeSpan(rows));
    EXPECT_EQ(rows, golden_.Layer<float>(layer.id, "rows_requantised"));
  }
}

// Dead positions are projected too: the golden has them.
TEST_P(GoldenStepTest, KvIsCloseAndNearlyAlwaysEqual) {
  const size_t width = block_->config().wkv_out();
  for (const GoldenLayer& layer : layers_) {
    const auto wanted = golden_.Layer<uint16_t>(layer.id, "kv");
    const std::vector<uint16_t> kv = ForwardAll(layer, {}).kv;
    ASSERT_EQ(kv.size(), wanted.size());
    size_t equal = 0;
    for (size_t p = 0; p < golden_.positions(); ++p) {
      double largest = 0;
      for (size_t i = p * width; i < (p + 1) * width; ++i) {
        largest = std::max<double>(largest, std::fabs(Bf16ToFloat(wanted[i])));
      }
      for (size_t i = p * width; i < (p + 1) * width; ++i) {
        equal += kv[i] == wanted[i] ? 1 : 0;
        const double want = Bf16ToFloat(wanted[i]);
        ASSERT_NEAR(Bf16ToFloat(kv[i]), want,
                    std::max(UlpOf(StreamDtype::kBf16, want), 1e-5 * largest))
            << "layer " << ToInt(layer.id) << " position " << p << " column "
            << i - p * width;
      }
    }
    const double share = static_cast<double>(equal) / kv.size();
    RecordProperty(absl::StrCat("equal_kv_layer_", ToInt(layer.id)),
                   absl::StrCat(share));
    EXPECT_GE(share, 0.995);
  }
}

// The gate in double precision from our own kv, of one live position.
double GateInDouble(const EngramConfig& config, absl::Span<const double> h,
                    absl::Span<const float> weight,
                    absl::Span<const uint16_t> key) {
  double hh = 0;
  double kk = 0;
  double dot = 0;
  for (size_t i = 0; i < h.size(); ++i) {
    const double k = Bf16ToFloat(key[i]);
    hh += h[i] * h[i];
    kk += k * k;
    dot += h[i] * weight[i] * k;
  }
  const auto dim = static_cast<double>(config.dim);
  dot /= std::sqrt(hh / dim + config.norm_eps) *
         std::sqrt(kk / dim + config.norm_eps) * std::sqrt(dim);
  const double x =
      std::copysign(std::sqrt(std::max(std::fabs(dot), 1e-6)), dot);
  return 1 / (1 + std::exp(-x));
}

TEST_P(GoldenStepTest, GateAndStreamsFollowFromOurOwnKv) {
  const EngramConfig& config = block_->config();
  const size_t dim = config.dim;
  for (const GoldenLayer& layer : layers_) {
    const Result result = ForwardAll(layer, golden_.mask());
    const LayerTensors& tensors = checkpoint_->layers()[layer.index];
    const auto q = *CopyTensor<uint16_t>(tensors.q_weight);
    const auto k = *CopyTensor<uint16_t>(tensors.k_weight);
    std::vector<float> weight(q.size());
    for (size_t i = 0; i < q.size(); ++i) {
      weight[i] = Bf16ToFloat(q[i]) * Bf16ToFloat(k[i]);
    }
    for (size_t p = 0; p < golden_.positions(); ++p) {
      if (golden_.mask()[p] == 0) continue;
      const uint16_t* kv = &result.kv[p * config.wkv_out()];
      for (size_t s = 0; s < config.hc_mult; ++s) {
        const size_t at = (p * config.hc_mult + s) * dim;
        std::vector<double> h(dim);
        for (size_t i = 0; i < dim; ++i) {
          h[i] = StreamAt(layer.streams_in, layer.dtype, at + i);
        }
        const double gate = GateInDouble(
            config, h, absl::MakeConstSpan(weight).subspan(s * dim, dim),
            absl::MakeConstSpan(kv + s * dim, dim));
        const double ours = result.gate[p * config.hc_mult + s];
        ASSERT_NEAR(ours, gate, 1e-6);
        for (size_t i = 0; i < dim; ++i) {
          const double value = Bf16ToFloat(kv[config.hc_mult * dim + i]);
          const double wanted = h[i] + static_cast<float>(ours * value);
          ASSERT_NEAR(StreamAt(result.streams, layer.dtype, at + i), wanted,
                      UlpOf(layer.dtype, wanted))
              << "layer " << ToInt(layer.id) << " position " << p;
        }
      }
    }
  }
}

TEST_P(GoldenStepTest, GateAndStreamsAreCloseToTheGolden) {
  const EngramConfig& config = block_->config();
  const size_t dim = config.dim;
  for (const GoldenLayer& layer : layers_) {
    const Result result = ForwardAll(layer, golden_.mask());
    const auto gate = golden_.Layer<float>(layer.id, "gate");
    const auto kv = golden_.Layer<uint16_t>(layer.id, "kv");
    const auto streams = StreamBytesOf(layer.id, "streams_out");
    ASSERT_EQ(result.streams.size(), streams.size());
    for (size_t g = 0; g < gate.size(); ++g) {
      const size_t p = g / config.hc_mult;
      if (golden_.mask()[p] == 0) continue;
      const double gate_error = std::fabs(double{result.gate[g]} - gate[g]);
      ASSERT_LE(gate_error, 5e-4);
      for (size_t i = 0; i < dim; ++i) {
        const double value =
            Bf16ToFloat(kv[p * config.wkv_out() + config.hc_mult * dim + i]);
        const double wanted = StreamAt(streams, layer.dtype, g * dim + i);
        ASSERT_NEAR(StreamAt(result.streams, layer.dtype, g * dim + i), wanted,
                    UlpOf(layer.dtype, wanted) +
                        gate[g] * UlpOf(StreamDtype::kBf16, value) +
                        gate_error * std::fabs(value))
            << "layer " << ToInt(layer.id) << " position " << p;
      }
    }
  }
}

TEST_P(GoldenStepTest, DeadPositionsAreUntouched) {
  const EngramConfig& config = block_->config();
  for (const GoldenLayer& layer : layers_) {
    const Result result = ForwardAll(layer, golden_.mask());
    const size_t bytes = layer.streams_in.size() / golden_.positions();
    for (size_t p = 0; p < golden_.positions(); ++p) {
      if (golden_.mask()[p] != 0) continue;
      EXPECT_EQ(std::memcmp(&result.streams[p * bytes],
                            &layer.streams_in[p * bytes], bytes),
                0);
      for (size_t s = 0; s < config.hc_mult; ++s) {
        EXPECT_EQ(BitsFromFloat(result.gate[p * config.hc_mult + s]), 0U);
      }
      for (size_t i = 0; i < config.dim; ++i) {
        ASSERT_EQ(result.value[p * config.dim + i], 0);
      }
    }
  }
}

// A caller that asks for gate and value and adds them itself.
TEST_P(GoldenStepTest, ContributionGivesTheSameStreams) {
  const EngramConfig& config = block_->config();
  for (const GoldenLayer& layer : layers_) {
    const Result result = ForwardAll(layer, golden_.mask());
    for (size_t p = 0; p < golden_.positions(); ++p) {
      for (size_t i = 0; i < size_t{config.hc_mult} * config.dim; ++i) {
        const size_t at = p * config.hc_mult * config.dim + i;
        const float gate = result.gate[p * config.hc_mult + i / config.dim];
        const float value =
            Bf16ToFloat(result.value[p * config.dim + i % config.dim]);
        const auto h =
            static_cast<float>(StreamAt(layer.streams_in, layer.dtype, at));
        const float sum = h + gate * value;
        ASSERT_EQ(StreamAt(result.streams, layer.dtype, at),
                  layer.dtype == StreamDtype::kF32 ? sum : RoundToBf16(sum));
      }
    }
  }
}

// The promise to decode and chunked prefill: no batch changes a bit.
TEST_P(GoldenStepTest, SameBitsForAnyBatch) {
  for (const GoldenLayer& layer : layers_) {
    const Result all = ForwardAll(layer, golden_.mask());
    EXPECT_EQ(ForwardBy(1, *block_, layer), all);
    EXPECT_EQ(ForwardBy(3, *block_, layer), all);
    EXPECT_EQ(ForwardBy(5, *block_, layer), all);
  }
}

TEST_P(GoldenStepTest, SameBitsForAnyNumberOfThreads) {
  auto map =
      TokenMap::Load(absl::StrCat(checkpoint_->dir(), "/", kTokenMapFileName),
                     checkpoint_->config());
  ASSERT_TRUE(map.ok());
  for (const size_t threads : {1, 5}) {
    ThreadPool pool({.thread_count = threads});
    const auto block = EngramBlock::Create(*checkpoint_, *map, &pool);
    ASSERT_TRUE(block.ok()) << block.status();
    for (const GoldenLayer& layer : layers_) {
      EXPECT_EQ(ForwardBy(golden_.positions(), **block, layer),
                ForwardAll(layer, golden_.mask()))
          << threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenStepTest,
                         testing::ValuesIn(std::vector<std::string>(
                             absl::StrSplit(ENGRAM_GOLDEN_CASES, ','))),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return absl::StrReplaceAll(info.param, {{"-", "_"}});
                         });

}  // namespace
}  // namespace engram
