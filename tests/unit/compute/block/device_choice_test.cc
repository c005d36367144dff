#include "compute/block/device_choice.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Kind = DeviceRequest::Kind;
using Devices = absl::StatusOr<std::vector<GpuDevice>>;

constexpr uint64_t kGiB = uint64_t{1} << 30;

GpuDevice Hopper(int index, uint64_t memory_bytes = 140 * kGiB) {
  return {.index = index,
          .name = "H200",
          .major = 9,
          .minor = 0,
          .sm_count = 132,
          .memory_bytes = memory_bytes,
          .shared_bytes_per_block = 227 << 10};
}

GpuDevice Turing(int index) {
  return {.index = index,
          .name = "T4",
          .major = 7,
          .minor = 5,
          .sm_count = 40,
          .memory_bytes = 16 * kGiB};
}

GpuDevice SmallSharedMemory(int index) {
  return {.index = index,
          .name = "RTX",
          .major = 12,
          .minor = 0,
          .sm_count = 170,
          .memory_bytes = 32 * kGiB,
          .shared_bytes_per_block = 99 << 10};
}

std::string NameOf(const absl::StatusOr<DeviceChoice>& choice) {
  return choice.ok() ? choice->Name() : choice.status().ToString();
}

DeviceRequest Parse(const std::string& text) {
  const auto request = DeviceRequest::Parse(text);
  EXPECT_TRUE(request.ok()) << request.status();
  return *request;
}

absl::StatusOr<DeviceChoice> Choose(const std::string& text,
                                    const Devices& found) {
  return ChooseDevice(Parse(text), found, 10 * kGiB);
}

TEST(DeviceRequestTest, Parses) {
  EXPECT_EQ(Parse("auto"), (DeviceRequest{Kind::kAuto, std::nullopt}));
  EXPECT_EQ(Parse("cpu"), (DeviceRequest{Kind::kCpu, std::nullopt}));
  EXPECT_EQ(Parse("cuda"), (DeviceRequest{Kind::kCuda, std::nullopt}));
  EXPECT_EQ(Parse("cuda:0"), (DeviceRequest{Kind::kCuda, 0}));
  EXPECT_EQ(Parse("cuda:12"), (DeviceRequest{Kind::kCuda, 12}));
  EXPECT_EQ(DeviceRequest().kind, Kind::kAuto);
  for (const char* text : {"auto", "cpu", "cuda", "cuda:0", "cuda:12"}) {
    EXPECT_EQ(Parse(text).ToString(), text);
  }
}

TEST(DeviceRequestTest, RefusesAllElse) {
  for (const std::string text :
       {"", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda: 1", "cuda:+1", "cuda:1x",
        "cuda:1000", "cuda:99999999999", "cuda:0,1", "auto "}) {
    const auto request = DeviceRequest::Parse(text);
    EXPECT_TRUE(absl::IsInvalidArgument(request.status())) << text;
    EXPECT_THAT(std::string(request.status().message()),
                AllOf(HasSubstr("\"" + text + "\""), HasSubstr("cuda:N")));
  }
}

TEST(ChooseDeviceTest, TheCpuNeedsNoReasonOfAGpu) {
  const auto choice = Choose("cpu", Devices({Hopper(0)}));
  EXPECT_EQ(NameOf(choice), "cpu");
  EXPECT_THAT(choice->reason, HasSubstr("asked for"));
}

TEST(ChooseDeviceTest, TheFirstGpuThatWillDo) {
  const Devices found = {
      {Turing(0), Hopper(1, 5 * kGiB), Hopper(2), Hopper(3)}};
  EXPECT_EQ(NameOf(Choose("auto", found)), "cuda:2");
  EXPECT_EQ(NameOf(Choose("cuda", found)), "cuda:2");
  EXPECT_EQ(NameOf(Choose("cuda:3", found)), "cuda:3");
  EXPECT_THAT(Choose("auto", found)->reason,
              AllOf(HasSubstr("H200"), HasSubstr("9.0")));
}

void ExpectRefused(const std::string& text, const Devices& found,
                   absl::StatusCode code,
                   const std::vector<std::string>& words) {
  const absl::Status status = Choose(text, found).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("device " + text));
  for (const std::string& word : words) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(word));
  }
}

// No GPU will do: auto takes the CPU and says why, cuda fails with the same
// words.
void ExpectNoGpu(const Devices& found, absl::StatusCode code,
                 const std::vector<std::string>& words) {
  ExpectRefused("cuda", found, code, words);
  const auto fallback = Choose("auto", found);
  ASSERT_EQ(NameOf(fallback), "cpu");
  for (const std::string& word : words) {
    EXPECT_THAT(fallback->reason, HasSubstr(word));
  }
}

TEST(ChooseDeviceTest, WithoutGpuCode) {
  ExpectNoGpu(absl::UnimplementedError("this build has no GPU code"),
              absl::StatusCode::kUnimplemented, {"no GPU code"});
}

TEST(ChooseDeviceTest, WithoutDriver) {
  ExpectNoGpu(absl::NotFoundError("no driver"), absl::StatusCode::kNotFound,
              {"no driver"});
  ExpectNoGpu(Devices(std::vector<GpuDevice>()), absl::StatusCode::kNotFound,
              {"no GPU"});
}

TEST(ChooseDeviceTest, TooOld) {
  ExpectNoGpu(Devices({Turing(0)}), absl::StatusCode::kFailedPrecondition,
              {"T4", "7.5", "9.0"});
  ExpectRefused("cuda:0", Devices({Turing(0), Hopper(1)}),
                absl::StatusCode::kFailedPrecondition, {"T4", "7.5", "9.0"});
}

TEST(ChooseDeviceTest, TooSmall) {
  ExpectNoGpu(Devices({Hopper(0, 10 * kGiB - 1)}),
              absl::StatusCode::kResourceExhausted,
              {"10737418239", "10737418240"});
}

TEST(ChooseDeviceTest, TooLittleSharedMemory) {
  ExpectNoGpu(Devices({SmallSharedMemory(0)}),
              absl::StatusCode::kFailedPrecondition, {"RTX", "101376"});
}

TEST(ChooseDeviceTest, NamesTheReasonOfEachDevice) {
  ExpectNoGpu(Devices({Turing(0), Hopper(1, kGiB)}),
              absl::StatusCode::kFailedPrecondition,
              {"cuda:0 (T4)", "cuda:1 (H200)", "1073741824"});
}

TEST(ChooseDeviceTest, NoSuchIndex) {
  ExpectRefused("cuda:2", Devices({Hopper(0), Hopper(1)}),
                absl::StatusCode::kNotFound, {"GPU 2", "2, counted from 0"});
}

}  // namespace
}  // namespace engram
