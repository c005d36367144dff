// Over tests/gpu/fake_cuda: the code of the GPU, run on the CPU.
#include "compute/project/gpu_projection.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/project/fragment_layout.h"
#include "core/base/thread_pool.h"
#include "core/gpu/gpu_memory.h"
#include "core/gpu/gpu_stream.h"
#include "core/model/number_formats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/compute/project/test_weights.h"

namespace engram {
namespace {

using test::IsError;
using test::IsOk;
using test::RandomRows;
using test::TestWeights;
using ::testing::HasSubstr;

constexpr uint32_t kIn = 160;
constexpr uint32_t kOut = 77;

class GpuProjectionTest : public testing::Test {
 protected:
  GpuProjectionTest() : pool_({.thread_count = 2}), weights_(kIn, kOut, 1) {}

  std::unique_ptr<const GpuProjection> Make(
      const GpuProjection::Options& options) {
    auto projection = GpuProjection::Create(weights_.View(), options, &pool_);
    EXPECT_THAT(projection, IsOk());
    return *std::move(projection);
  }

  // rows [tokens, kIn] through the layout that the projection wants.
  std::vector<uint16_t> Project(const GpuProjection& projection,
                                absl::Span<const float> rows) {
    const size_t count = rows.size() / kIn;
    std::vector<uint16_t> tokens(FragmentCount(count, kIn));
    const bool fragments =
        projection.token_layout(count) == TokenLayout::kFragments;
    for (size_t i = 0; i < rows.size(); ++i) {
      tokens[fragments ? FragmentIndex(i / kIn, i % kIn, kIn) : i] =
          FloatToBf16(rows[i]);
    }
    auto device_tokens = DeviceBuffer::Upload(
        absl::MakeSpan(reinterpret_cast<const std::byte*>(tokens.data()),
                       tokens.size() * sizeof(uint16_t)));
    EXPECT_THAT(device_tokens, IsOk());
    std::vector<uint16_t> kv(count * kOut, 0x7FA5);
    const size_t kv_bytes = kv.size() * sizeof(uint16_t);
    auto device_kv = DeviceBuffer::Allocate(kv_bytes);
    EXPECT_THAT(device_kv, IsOk());
    auto stream = GpuStream::Create();
    EXPECT_THAT(stream, IsOk());
    EXPECT_THAT(
        projection.Project(device_tokens->as<uint16_t>(), count,
                           device_kv->as<uint16_t>(), (*stream)->handle()),
        IsOk());
    EXPECT_THAT(
        CopyToHost(kv.data(), device_kv->data(), kv_bytes, (*stream)->handle()),
        IsOk());
    EXPECT_THAT((*stream)->Synchronize(), IsOk());
    return kv;
  }

  void ExpectClose(absl::Span<const float> rows,
                   absl::Span<const uint16_t> kv) {
    for (size_t i = 0; i < kv.size(); ++i) {
      const auto [wanted, magnitude] =
          weights_.Product(&rows[i / kOut * kIn], i % kOut);
      ASSERT_NEAR(Bf16ToFloat(kv[i]), wanted,
                  std::fabs(wanted) / 256 + magnitude * 1e-6)
          << i;
    }
  }

  ThreadPool pool_;
  TestWeights weights_;
};

TEST_F(GpuProjectionTest, InvariantModeHasOneLayoutAndTheSameBits) {
  const auto projection = Make({.max_tokens = 200});
  EXPECT_EQ(projection->in(), kIn);
  EXPECT_EQ(projection->out(), kOut);
  const std::vector<float> rows = RandomRows(130, kIn, 2);
  const std::vector<uint16_t> wanted = Project(*projection, rows);
  ExpectClose(rows, wanted);
  for (const size_t count : {1, 9, 20, 40, 65}) {
    EXPECT_EQ(projection->token_layout(count), TokenLayout::kFragments);
    const auto kv =
        Project(*projection, absl::MakeConstSpan(rows).subspan(0, count * kIn));
    EXPECT_TRUE(std::equal(kv.begin(), kv.end(), wanted.begin())) << count;
  }
}

TEST_F(GpuProjectionTest, FastModeLeavesFewTokensToTheInvariantKernels) {
  const auto invariant = Make({.max_tokens = 200});
  const auto fast = Make({.mode = ProjectionMode::kFast, .max_tokens = 200});
  const std::vector<float> rows = RandomRows(65, kIn, 3);
  const auto few = absl::MakeConstSpan(rows).subspan(0, 64 * kIn);
  EXPECT_EQ(fast->token_layout(64), TokenLayout::kFragments);
  EXPECT_EQ(Project(*fast, few), Project(*invariant, few));
  EXPECT_EQ(fast->token_layout(65), TokenLayout::kRowMajor);
  ExpectClose(rows, Project(*fast, rows));
}

TEST_F(GpuProjectionTest, NoTokens) {
  EXPECT_THAT(Make({})->Project(nullptr, 0, nullptr, nullptr), IsOk());
}

TEST_F(GpuProjectionTest, RefusesWhatItWasNotMadeFor) {
  const auto projection = Make({.max_tokens = 8});
  alignas(16) uint16_t memory[16] = {};
  EXPECT_THAT(projection->Project(memory, 9, memory, nullptr),
              IsError(absl::StatusCode::kInvalidArgument,
                      HasSubstr("9 tokens, at most 8")));
  EXPECT_THAT(projection->Project(memory + 1, 1, memory, nullptr),
              IsError(absl::StatusCode::kInvalidArgument,
                      HasSubstr("multiples of 16")));
  EXPECT_THAT(projection->Project(memory, 1, memory + 4, nullptr),
              IsError(absl::StatusCode::kInvalidArgument,
                      HasSubstr("multiples of 16")));
}

TEST_F(GpuProjectionTest, RefusesWeightsAsTheCpuDoes) {
  const auto refuses = [&](const ProjectionWeights& weights,
                           const char* message) {
    EXPECT_THAT(
        GpuProjection::Create(weights, {}, &pool_),
        IsError(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  weights_.codes[3] = 0x7F;
  refuses(weights_.View(), "NaN codes among rows 0 to 31");
  weights_.scales[2] = 255;
  refuses(weights_.View(), "scale 2 of the projection weight is NaN");
  weights_.codes.pop_back();
  refuses(weights_.View(), "has 12319 codes, must have 12320");
  weights_.in = 33;
  refuses(weights_.View(), "must be a multiple of 32");
}

TEST_F(GpuProjectionTest, RefusesMoreTokensThanCanBeCounted) {
  for (const size_t max_tokens : {size_t{0}, size_t{1} << 32}) {
    EXPECT_THAT(
        GpuProjection::Create(weights_.View(), {.max_tokens = max_tokens},
                              &pool_),
        IsError(absl::StatusCode::kInvalidArgument, HasSubstr("can count")));
  }
}

TEST_F(GpuProjectionTest, FastModeRefusesScalesBeyondBf16) {
  std::fill(weights_.scales.begin(), weights_.scales.end(), 0);
  EXPECT_THAT(GpuProjection::Create(weights_.View(),
                                    {.mode = ProjectionMode::kFast}, &pool_),
              IsError(absl::StatusCode::kInvalidArgument, HasSubstr("2^-127")));
  EXPECT_THAT(GpuProjection::Create(weights_.View(), {}, &pool_), IsOk());
}

}  // namespace
}  // namespace engram
