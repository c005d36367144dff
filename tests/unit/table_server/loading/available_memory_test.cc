#include "table_server/loading/available_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A directory laid out like /proc and /sys.
class AvailableMemoryTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& content) {
    const std::filesystem::path full = dir_.path() + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << content;
  }
  AvailableMemory Read() {
    const auto available = ReadAvailableMemory(dir_.path());
    EXPECT_THAT(available, IsOk());
    return available.value_or(AvailableMemory{});
  }

  const test::TempDir dir_;
};

constexpr char kMeminfo[] =
    "MemTotal:       16000000 kB\nMemFree:         1000000 kB\n"
    "MemAvailable:    8000000 kB\n";
constexpr uint64_t kMachine = uint64_t{8000000} << 10;

TEST_F(AvailableMemoryTest, TheMachineAlone) {
  Write("/proc/meminfo", kMeminfo);
  EXPECT_EQ(Read().bytes, kMachine);
  EXPECT_THAT(Read().limited_by, HasSubstr("MemAvailable"));
}

TEST_F(AvailableMemoryTest, NoMeminfo) {
  EXPECT_THAT(ReadAvailableMemory(dir_.path()),
              IsError(absl::StatusCode::kNotFound, HasSubstr("meminfo")));
}

TEST_F(AvailableMemoryTest, GroupOfVersion2CountsCacheAsFree) {
  Write("/proc/meminfo", kMeminfo);
  Write("/proc/self/cgroup", "0::/pod/engram\n");
  Write("/sys/fs/cgroup/pod/engram/memory.max", "1000000\n");
  Write("/sys/fs/cgroup/pod/engram/memory.current", "700000\n");
  Write("/sys/fs/cgroup/pod/engram/memory.stat",
        "anon 400000\ninactive_file 200000\nactive_file 100000\n");
  EXPECT_EQ(Read().bytes, 600000U);
  EXPECT_THAT(Read().limited_by, HasSubstr("/pod/engram"));
}

TEST_F(AvailableMemoryTest, TheTightestGroupAboveCounts) {
  Write("/proc/meminfo", kMeminfo);
  Write("/proc/self/cgroup", "0::/pod/engram\n");
  Write("/sys/fs/cgroup/pod/engram/memory.max", "max\n");
  Write("/sys/fs/cgroup/pod/engram/memory.current", "700000\n");
  Write("/sys/fs/cgroup/pod/memory.max", "900000\n");
  Write("/sys/fs/cgroup/pod/memory.current", "800000\n");
  EXPECT_EQ(Read().bytes, 100000U);
}

TEST_F(AvailableMemoryTest, ContainerWhoseGroupIsTheMount) {
  Write("/proc/meminfo", kMeminfo);
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "1000\n");
  Write("/sys/fs/cgroup/memory.current", "5000\n");
  EXPECT_EQ(Read().bytes, 0U);
}

TEST_F(AvailableMemoryTest, GroupOfVersion1) {
  Write("/proc/meminfo", kMeminfo);
  Write("/proc/self/cgroup", "12:cpu:/x\n9:memory:/docker/1\n");
  Write("/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "2000000\n");
  Write("/sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes", "500000\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "12345\n");
  EXPECT_EQ(Read().bytes, 1500000U);
}

TEST(CheckMemoryTest, FitsOrShowsTheSums) {
  const std::vector<LayerMemory> layers = {{LayerId{1}, 1000000000, 10},
                                           {LayerId{14}, 2000000000, 20}};
  const uint64_t reserve = uint64_t{256} << 20;
  EXPECT_THAT(CheckMemory(layers, 0, {3000000000 + reserve, "x"}), IsOk());
  EXPECT_THAT(CheckMemory(layers, 5000, {3000005000 + reserve, "x"}), IsOk());
  EXPECT_THAT(CheckMemory(layers, 5000, {3000004999 + reserve, "x"}),
              IsError(absl::StatusCode::kResourceExhausted,
                      HasSubstr("for calls in flight")));
  EXPECT_THAT(CheckMemory(layers, 0, {2999999999 + reserve, "cgroup /pod"}),
              IsError(absl::StatusCode::kResourceExhausted,
                      AllOf(HasSubstr("1.0 GB for 10 partitions of layer 1"),
                            HasSubstr("2.0 GB for 20 partitions of layer 14"),
                            HasSubstr("3268435456 bytes) needed"),
                            HasSubstr("3268435455 bytes) available"),
                            HasSubstr("cgroup /pod"))));
}

TEST(CheckMemoryTest, ThisMachineCanBeRead) {
  const auto available = ReadAvailableMemory("");
  ASSERT_THAT(available, IsOk());
  EXPECT_GT(available->bytes, 0U);
}

}  // namespace
}  // namespace engram
