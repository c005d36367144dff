// The GPU's projection, run by the emulator, against the oracle's kv.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "compute/block/layer_weights.h"
#include "compute/project/project_shape.h"
#include "gtest/gtest.h"
#include "tests/testing/golden_step.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/step_compare.h"
#include "tests/unit/compute/project/emulated_projection.h"

namespace engram {
namespace {

using test::CheckEqualShare;
using test::CountEqualKv;
using test::EmulatedProjection;
using test::GoldenLayer;
using test::GoldenStep;
using test::IsOk;

class GoldenProjectKernelTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenProjectKernelTest, KvIsCloseAndNearlyAlwaysEqual) {
  const auto step =
      GoldenStep::Open(absl::StrCat(ENGRAM_SOURCE_DIR "/tests/golden/data/",
                                    GetParam(), ".golden.safetensors"),
                       absl::StrCat(ENGRAM_GOLDEN_CHECKPOINTS "/", GetParam()));
  ASSERT_THAT(step, IsOk());
  const size_t in = (*step)->config().wkv_in();
  const size_t out = (*step)->config().wkv_out();
  // One layer and tile of the large case: each takes seconds.
  const bool large = in * out > size_t{1} << 24;
  for (const GoldenLayer& layer : (*step)->layers()) {
    if (large && layer.index > 0) break;
    const auto weights =
        ReadWkvWeights((*step)->checkpoint().layers()[layer.index]);
    ASSERT_THAT(weights, IsOk());
    const EmulatedProjection projection(weights->View((*step)->config()));
    const auto rows =
        (*step)->golden().Layer<float>(layer.id, "rows_requantised");
    const auto wanted = (*step)->golden().Layer<uint16_t>(layer.id, "kv");
    for (const ProjectTileSize size : kProjectTileSizes) {
      if (large && size != ProjectTileSize::k8Tokens) break;
      const size_t tokens =
          large ? std::min<size_t>(8, rows.size() / in) : rows.size() / in;
      const auto equal = CountEqualKv(
          out,
          projection.Run(size,
                         absl::MakeConstSpan(rows).subspan(0, tokens * in)),
          absl::MakeConstSpan(wanted).subspan(0, tokens * out));
      ASSERT_THAT(equal.status(), IsOk()) << "layer " << layer.index;
      EXPECT_THAT(CheckEqualShare(*equal, tokens * out), IsOk())
          << "layer " << layer.index;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenProjectKernelTest,
                         testing::ValuesIn(std::vector<std::string>(
                             absl::StrSplit(ENGRAM_GOLDEN_CASES, ','))),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return absl::StrReplaceAll(info.param, {{"-", "_"}});
                         });

}  // namespace
}  // namespace engram
