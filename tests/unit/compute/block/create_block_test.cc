#include "compute/block/create_block.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/gpu/gpu_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const char kTiny[] = ENGRAM_SOURCE_DIR "/tests/golden/data/tiny";

// On whatever machine the test runs: without GPU code, without a device, or
// with one.
class CreateBlockTest : public testing::Test {
 protected:
  absl::StatusOr<ChosenBlock> Create(const std::string& device) {
    return CreateEngramBlock(checkpoint_, map_, &pool_,
                             {.device = *DeviceRequest::Parse(device),
                              .projection = ProjectionMode::kFast});
  }

  ThreadPool pool_{{.thread_count = 2}};
  const Checkpoint checkpoint_ = *Checkpoint::Open(kTiny);
  const TokenMap map_ = *TokenMap::Load(
      absl::StrCat(kTiny, "/", kTokenMapFileName), checkpoint_.config());
};

TEST_F(CreateBlockTest, TheCpuIsAlwaysThereAndInvariant) {
  const auto chosen = Create("cpu");
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->device.Name(), "cpu");
  EXPECT_EQ(chosen->block->projection_mode(), ProjectionMode::kInvariant);
  EXPECT_EQ(chosen->block->health(), absl::OkStatus());
  EXPECT_EQ(chosen->block->use().slots_limit, 0);
  EXPECT_EQ(chosen->block->use().rows.limit_bytes, 0);
  const auto rows = chosen->block->AllocateRows(100);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->bytes().size(), 100);
}

TEST_F(CreateBlockTest, AutoAlwaysGivesABlock) {
  const auto chosen = Create("auto");
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->block->config(), checkpoint_.config());
  EXPECT_NE(chosen->device.reason, "");
}

TEST_F(CreateBlockTest, CudaWithoutADeviceIsRefusedWithTheReason) {
  const auto found = ListGpuDevices();
  if (found.ok()) GTEST_SKIP() << "this machine has a GPU";
  const auto automatic = Create("auto");
  ASSERT_TRUE(automatic.ok()) << automatic.status();
  EXPECT_EQ(automatic->device.Name(), "cpu");
  EXPECT_THAT(automatic->device.reason,
              HasSubstr(std::string(found.status().message())));
  for (const std::string device : {"cuda", "cuda:0"}) {
    const absl::Status refused = Create(device).status();
    EXPECT_EQ(refused.code(), found.status().code());
    EXPECT_THAT(std::string(refused.message()),
                StartsWith(absl::StrCat("device ", device, ": ")));
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr(std::string(found.status().message())));
  }
}

TEST_F(CreateBlockTest, ADeviceThatNoMachineHas) {
  const auto chosen = Create("cuda:999");
  EXPECT_FALSE(chosen.ok());
  EXPECT_THAT(std::string(chosen.status().message()), HasSubstr("cuda:999"));
}

}  // namespace
}  // namespace engram
