// The GPU's block over tests/gpu/fake_cuda, which runs the kernels on the CPU
// and the streams in an order of its own. engram-gpu-check compares the values
// of many more steps; here is what a device that works does not show.

#include "compute/block/gpu_block.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compute/block/gpu_layer_step.h"
#include "compute/block/layer_weights.h"
#include "core/base/notification.h"
#include "core/gpu/gpu_stream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gpu/check/block_compare.h"
#include "tests/gpu/fake_cuda/fake_device.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/step_compare.h"
#include "tests/testing/step_run.h"

namespace engram {
namespace {

using gpu_check::BlockPair;
using gpu_check::DeadTokens;
using test::IsError;
using test::IsOk;
using test::RunStep;
using test::StepInput;
using test::StepResult;
using ::testing::HasSubstr;

const char kTiny[] = ENGRAM_SOURCE_DIR "/tests/golden/data/tiny";

void SetFaults(const fake_cuda::Faults& faults) {
  const auto lock = fake_cuda::Device::Get().Lock();
  fake_cuda::Device::Get().faults = faults;
}

class GpuBlockTest : public testing::Test {
 protected:
  GpuBlockTest() {
    options_.pool = &pool_;
    options_.slots = 2;
    options_.tile_tokens = 16;
    options_.pinned_rows_bytes = 1 << 16;
  }
  ~GpuBlockTest() override { SetFaults({}); }

  std::unique_ptr<const EngramBlock> Make() const {
    auto block = CreateGpuEngramBlock(checkpoint_, map_, options_);
    EXPECT_THAT(block.status(), IsOk());
    return block.ok() ? *std::move(block) : nullptr;
  }
  StepInput Step(size_t tokens, DeadTokens dead = DeadTokens::kSome) const {
    gpu_check::Random random(tokens);
    return gpu_check::RandomStep(*cpu_, 0, StreamDtype::kBf16, tokens, dead,
                                 random);
  }

  // By the comparisons of the goldens: kv closely, the rest from kv exactly.
  void ExpectAsTheCpu(const EngramBlock& block, const StepInput& step) const {
    SCOPED_TRACE(gpu_check::StepName(step));
    const auto result = RunStep(block, step);
    const auto wanted = RunStep(*cpu_, step);
    ASSERT_THAT(result.status(), IsOk());
    ASSERT_THAT(wanted.status(), IsOk());
    const EngramConfig& config = checkpoint_.config();
    const auto equal =
        test::CountEqualKv(config.wkv_out(), result->kv, wanted->kv);
    ASSERT_THAT(equal.status(), IsOk());
    EXPECT_THAT(test::CheckEqualShare(*equal, result->kv.size()), IsOk());
    const auto weights = ReadGateWeights(config, checkpoint_.layers()[0]);
    ASSERT_THAT(weights.status(), IsOk());
    EXPECT_THAT(
        test::CompareWithOwnKv(*weights, test::Inputs::kRandom, step, *result),
        IsOk());
    EXPECT_THAT(test::CompareDead(config, step, *result), IsOk());
    for (size_t token = 0; token < step.tokens; ++token) {
      const auto value = result->value.begin() + token * config.dim;
      const auto kv = result->kv.begin() + (token + 1) * config.wkv_out();
      EXPECT_TRUE(std::equal(kv - config.dim, kv, value)) << token;
    }
  }

  ThreadPool pool_{{.thread_count = 2}};
  const Checkpoint checkpoint_ = *Checkpoint::Open(kTiny);
  const TokenMap map_ = *TokenMap::Load(
      absl::StrCat(kTiny, "/", kTokenMapFileName), checkpoint_.config());
  const std::unique_ptr<const EngramBlock> cpu_ =
      *EngramBlock::Create(checkpoint_, map_, &pool_);
  GpuBlockOptions options_;
};

TEST_F(GpuBlockTest, GivesWhatTheCpuGives) {
  const auto block = Make();
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->tile_tokens(), 16U);
  const BlockPair pair = {*block, *cpu_, checkpoint_};
  for (const size_t tokens : {1, 3, 16, 37}) {
    ExpectAsTheCpu(*block, Step(tokens));
    ExpectAsTheCpu(*block, Step(tokens, DeadTokens::kNone));
  }
  EXPECT_THAT(CompareCallForms(pair, 5, 2), IsOk());
  EXPECT_THAT(ComparePieces(pair, 20, {1, 7}, 3), IsOk());
  EXPECT_THAT(CompareConcurrent(pair, 9, 4, 3, 4), IsOk());
  EXPECT_THAT(CompareRefusals(pair, 5), IsOk());
  EXPECT_EQ(block->use().slots_in_use, 0U);
}

// Without threads to copy with, and with tiles that no graph computes.
TEST_F(GpuBlockTest, LargeTilesOnOneThread) {
  options_.pool = nullptr;
  options_.tile_tokens = 260;
  const auto block = Make();
  ASSERT_NE(block, nullptr);
  ExpectAsTheCpu(*block, Step(300, DeadTokens::kNone));
}

TEST_F(GpuBlockTest, TheFastModeToo) {
  options_.projection = ProjectionMode::kFast;
  options_.tile_tokens = 100;
  const auto block = Make();
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->projection_mode(), ProjectionMode::kFast);
  ExpectAsTheCpu(*block, Step(10));
  ExpectAsTheCpu(*block, Step(150));
}

TEST_F(GpuBlockTest, BoundsAreSeen) {
  const auto block = Make();
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->use().slots_limit, 2U);
  EXPECT_EQ(block->use().rows.limit_bytes, options_.pinned_rows_bytes);
  const auto pinned = block->AllocateRows(options_.pinned_rows_bytes);
  ASSERT_THAT(pinned.status(), IsOk());
  EXPECT_EQ(block->use().rows.used_bytes, options_.pinned_rows_bytes);
  EXPECT_THAT(block->AllocateRows(10).status(), IsOk());
  EXPECT_EQ(block->use().rows.fallbacks, 1U);
}

TEST_F(GpuBlockTest, RefusesOptionsThatGiveNoBlock) {
  options_.slots = 0;
  EXPECT_THAT(
      CreateGpuEngramBlock(checkpoint_, map_, options_).status(),
      IsError(absl::StatusCode::kInvalidArgument, HasSubstr("0 slots")));
  options_.slots = 1;
  options_.tile_tokens = 0;
  EXPECT_THAT(
      CreateGpuEngramBlock(checkpoint_, map_, options_).status(),
      IsError(absl::StatusCode::kInvalidArgument, HasSubstr("0 tokens")));
  options_.tile_tokens = 1;
  options_.device = 7;
  EXPECT_THAT(CreateGpuEngramBlock(checkpoint_, map_, options_).status(),
              IsError(absl::StatusCode::kInternal, HasSubstr("GPU 7")));
}

TEST_F(GpuBlockTest, TooLittleMemoryIsAnErrorOfTheStart) {
  options_.pinned_rows_bytes = fake_cuda::Device::kMemoryBytes;
  EXPECT_THAT(CreateGpuEngramBlock(checkpoint_, map_, options_).status(),
              IsError(absl::StatusCode::kResourceExhausted,
                      HasSubstr(absl::StrCat(options_.pinned_rows_bytes))));
}

TEST_F(GpuBlockTest, AnErrorOfOneCallIsNotTheEnd) {
  const auto block = Make();
  ASSERT_NE(block, nullptr);
  const StepInput step = Step(9);
  const auto wanted = RunStep(*block, step);
  ASSERT_THAT(wanted.status(), IsOk());
  // Of rows, streams and three outputs.
  for (int copy = 1; copy <= 5; ++copy) {
    SetFaults({.refused_copies = copy});
    for (int i = 0; i < copy; ++i) {
      EXPECT_THAT(RunStep(*block, step).status(),
                  IsError(absl::StatusCode::kInternal, HasSubstr("copying")));
    }
    EXPECT_THAT(block->health(), IsOk());
    const auto after = RunStep(*block, step);
    ASSERT_THAT(after.status(), IsOk());
    EXPECT_THAT(test::CompareBits(*after, *wanted), IsOk());
  }
  EXPECT_EQ(block->use().slots_in_use, 0U);
}

TEST_F(GpuBlockTest, ALostDeviceIsTheEnd) {
  const auto block = Make();
  ASSERT_NE(block, nullptr);
  const StepInput step = Step(3);
  SetFaults({.lost = true});
  const auto ended =
      IsError(absl::StatusCode::kUnavailable, HasSubstr("cuda:0 has failed"));
  EXPECT_THAT(RunStep(*block, step).status(), ended);
  SetFaults({});
  EXPECT_THAT(block->health(), ended);
  EXPECT_THAT(RunStep(*block, step).status(), ended);
  EXPECT_EQ(block->use().slots_in_use, 0U);
}

TEST_F(GpuBlockTest, ADeviceThatDoesNotAnswerIsTheEnd) {
  options_.device_timeout = absl::Milliseconds(200);
  const auto block = Make();
  ASSERT_NE(block, nullptr);
  SetFaults({.stuck = true});
  EXPECT_THAT(
      RunStep(*block, Step(3)).status(),
      IsError(absl::StatusCode::kUnavailable, HasSubstr("by the deadline")));
  SetFaults({});
  EXPECT_THAT(block->health(), IsError(absl::StatusCode::kUnavailable,
                                       HasSubstr("cuda:0 has failed")));
}

TEST_F(GpuBlockTest, ACallThatGetsNoSlotSaysSo) {
  options_.slots = 1;
  options_.slot_timeout = absl::Milliseconds(1);
  options_.device_timeout = absl::Seconds(60);
  const auto block = Make();
  ASSERT_NE(block, nullptr);
  SetFaults({.stuck = true});
  std::thread holder(
      [&] { EXPECT_THAT(RunStep(*block, Step(1)).status(), IsOk()); });
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (block->use().slots_in_use == 0 && absl::Now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_THAT(
      RunStep(*block, Step(2)).status(),
      IsError(absl::StatusCode::kResourceExhausted, HasSubstr("all 1 slots")));
  SetFaults({});
  holder.join();
  EXPECT_THAT(block->health(), IsOk());
}

TEST_F(GpuBlockTest, DeadTokensNeedNoDevice) {
  const auto block = Make();
  ASSERT_NE(block, nullptr);
  const StepInput step = Step(4, DeadTokens::kAll);
  const auto wanted = RunStep(*cpu_, step);
  ASSERT_THAT(wanted.status(), IsOk());
  SetFaults({.stuck = true});
  const auto result = RunStep(*block, step);
  ASSERT_THAT(result.status(), IsOk());
  EXPECT_THAT(test::CompareBits(*result, *wanted), IsOk());
}

// ---- an engine on the same device ----

template <typename T>
std::vector<T> Download(const DeviceBuffer& buffer, GpuStream& stream) {
  std::vector<T> values(buffer.size_bytes() / sizeof(T));
  EXPECT_THAT(CopyToHost(values.data(), buffer.data(), buffer.size_bytes(),
                         stream.handle()),
              IsOk());
  EXPECT_THAT(stream.Synchronize(), IsOk());
  return values;
}

TEST_F(GpuBlockTest, AnEngineGetsTheBlocksBitsFromDeviceToDevice) {
  const auto block = Make();
  ASSERT_NE(block, nullptr);
  const StepInput step = Step(6);
  const auto wanted = RunStep(*block, step);
  ASSERT_THAT(wanted.status(), IsOk());
  const auto layers = GpuLayerStep::CreateAll(checkpoint_, {}, &pool_);
  ASSERT_THAT(layers.status(), IsOk());
  const GpuLayerStep& layer = *(*layers)[0];

  std::vector<int32_t> live_index;
  int32_t live = 0;
  for (const uint8_t m : step.mask) live_index.push_back(m != 0 ? live++ : -1);
  const EngramConfig& config = checkpoint_.config();
  const auto rows = DeviceBuffer::Upload(step.packed_rows);
  const auto streams = DeviceBuffer::Upload(step.streams);
  const auto index = DeviceBuffer::Upload(
      {reinterpret_cast<const std::byte*>(live_index.data()),
       live_index.size() * sizeof(int32_t)});
  const auto values = DeviceBuffer::Allocate(layer.ValuesBytes(live));
  const auto kv = DeviceBuffer::Allocate(live * config.wkv_out() * 2);
  const auto out = DeviceBuffer::Allocate(step.streams.size());
  const auto gate = DeviceBuffer::Allocate(6 * config.hc_mult * sizeof(float));
  const auto value = DeviceBuffer::Allocate(6 * config.dim * 2);
  const auto main = *GpuStream::Create();
  const auto side = *GpuStream::Create();
  const auto projected = *GpuEvent::Create();

  ASSERT_THAT(layer.ProjectRows({.packed = rows->data(),
                                 .tokens = static_cast<size_t>(live),
                                 .values = values->as<uint16_t>(),
                                 .kv = kv->as<uint16_t>()},
                                side->handle()),
              IsOk());
  ASSERT_THAT(projected->Record(*side), IsOk());
  ASSERT_THAT(main->Wait(*projected), IsOk());
  ASSERT_THAT(layer.Gate({.dtype = step.dtype,
                          .in = streams->data(),
                          .tokens = step.tokens,
                          .kv = kv->as<uint16_t>(),
                          .live_index = index->as<int32_t>(),
                          .out = out->data(),
                          .gate = gate->as<float>(),
                          .value = value->as<uint16_t>()},
                         main->handle()),
              IsOk());
  StepResult result = *wanted;  // kv is compared where tokens live, by value
  result.streams = Download<std::byte>(*out, *main);
  result.gate = Download<float>(*gate, *main);
  result.value = Download<uint16_t>(*value, *main);
  EXPECT_THAT(test::CompareBits(result, *wanted), IsOk());
}

}  // namespace
}  // namespace engram
