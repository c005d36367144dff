#include "compute/block/layer_weights.h"

#include <cstring>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/model/number_formats.h"
#include "core/model/safetensors.h"
#include "gtest/gtest.h"

namespace engram {
namespace {

const char kTiny[] = ENGRAM_SOURCE_DIR "/tests/golden/data/tiny";

TEST(LayerWeightsTest, GateWeightIsTheProductOfQAndK) {
  const Checkpoint checkpoint = *Checkpoint::Open(kTiny);
  const EngramConfig& config = checkpoint.config();
  const LayerTensors& tensors = checkpoint.layers()[1];
  const auto gate = ReadGateWeights(config, tensors);
  ASSERT_TRUE(gate.ok()) << gate.status();
  EXPECT_EQ(gate->hc_mult, config.hc_mult);
  EXPECT_EQ(gate->dim, config.dim);
  EXPECT_EQ(gate->norm_eps, static_cast<float>(config.norm_eps));
  const auto q = *CopyTensor<uint16_t>(tensors.q_weight);
  const auto k = *CopyTensor<uint16_t>(tensors.k_weight);
  ASSERT_EQ(gate->weight.size(), q.size());
  for (size_t i = 0; i < q.size(); ++i) {
    ASSERT_EQ(gate->weight[i], Bf16ToFloat(q[i]) * Bf16ToFloat(k[i])) << i;
  }
}

TEST(LayerWeightsTest, WkvIsACopyOfTheTensors) {
  const Checkpoint checkpoint = *Checkpoint::Open(kTiny);
  const LayerTensors& tensors = checkpoint.layers()[0];
  const auto wkv = ReadWkvWeights(tensors);
  ASSERT_TRUE(wkv.ok()) << wkv.status();
  const Projection::Weights view = wkv->View(checkpoint.config());
  EXPECT_EQ(view.in, checkpoint.config().wkv_in());
  EXPECT_EQ(view.out, checkpoint.config().wkv_out());
  ASSERT_EQ(view.codes.size(), tensors.wkv_weight.bytes.size());
  EXPECT_EQ(std::memcmp(view.codes.data(), tensors.wkv_weight.bytes.data(),
                        view.codes.size()),
            0);
  EXPECT_EQ(view.scales.size(), tensors.wkv_scale.bytes.size());
}

TEST(LayerWeightsTest, AConfigOfAnotherModelIsRefused) {
  const Checkpoint checkpoint = *Checkpoint::Open(kTiny);
  EngramConfig config = checkpoint.config();
  config.dim += 1;
  const auto gate = ReadGateWeights(config, checkpoint.layers()[0]);
  EXPECT_TRUE(absl::IsInvalidArgument(gate.status())) << gate.status();
}

TEST(LayerWeightsTest, ATruncatedFileIsDataLoss) {
  const std::string dir =
      absl::StrCat(testing::TempDir(), "/truncated_weights");
  std::filesystem::remove_all(dir);
  std::filesystem::copy(kTiny, dir);
  const std::string file = dir + "/model-00002-of-00002.safetensors";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  const Checkpoint checkpoint = *Checkpoint::Open(dir);
  std::filesystem::resize_file(file, 4096);
  bool lost = false;
  for (const LayerTensors& tensors : checkpoint.layers()) {
    lost |= absl::IsDataLoss(ReadWkvWeights(tensors).status());
  }
  EXPECT_TRUE(lost);
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace engram
