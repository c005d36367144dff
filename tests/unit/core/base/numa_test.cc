#include "core/base/numa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/page_buffer.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(ParseNumberListTest, RangesAndNumbers) {
  EXPECT_THAT(*ParseNumberList(""), IsEmpty());
  EXPECT_THAT(*ParseNumberList("0"), ElementsAre(0));
  EXPECT_THAT(*ParseNumberList("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(*ParseNumberList("5-5,65535"), ElementsAre(5, 65535));
  EXPECT_EQ(ParseNumberList("0-65535")->size(), 65536U);
}

TEST(ParseNumberListTest, AnythingElseIsRefused) {
  for (const std::string text : {",",     "-",       "0-",
                                 "-3",    "0,",      ",0",
                                 "0--3",  "0-1-2",   "3-0",
                                 "0-3,3", "0-3,2",   "7,1",
                                 " 0",    "0 ",      "+1",
                                 "0x1",   "a",       "0-b",
                                 "65536", "0-65536", "99999999999999999999",
                                 "0-3\n", "\n",      "0-10:2/4"}) {
    EXPECT_THAT(ParseNumberList(text),
                IsError(absl::StatusCode::kInvalidArgument, HasSubstr("\"")))
        << text;
  }
  EXPECT_THAT(ParseNumberList(std::string("0\0001", 3)), Not(IsOk()));
  EXPECT_THAT(ParseNumberList(std::string(100000, '-')), Not(IsOk()));
}

// A directory laid out like /sys/devices/system/node.
class ReadNumaTopologyTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& content) {
    const std::filesystem::path full = dir_.path() + "/" + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << content;
  }
  void WriteTwoNodes() {
    Write("online", "0-1\n");
    Write("has_memory", "0-1\n");
    Write("node0/cpulist", "0-3,8\n");
    Write("node1/cpulist", "4-7\n");
  }
  absl::StatusOr<NumaTopology> Read(const std::vector<int>& cpus) {
    return ReadNumaTopology(dir_.path(), cpus);
  }

  const test::TempDir dir_;
};

const std::vector<int> kTwelve = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

TEST_F(ReadNumaTopologyTest, TwoNodes) {
  WriteTwoNodes();
  const auto topology = Read(kTwelve);
  ASSERT_THAT(topology, IsOk());
  ASSERT_EQ(topology->nodes.size(), 2U);
  EXPECT_EQ(topology->nodes[0].id, 0);
  EXPECT_THAT(topology->nodes[0].cpus, ElementsAre(0, 1, 2, 3, 8));
  EXPECT_EQ(topology->nodes[1].id, 1);
  EXPECT_THAT(topology->nodes[1].cpus, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(topology->NodesWithMemory(), ElementsAre(0, 1));
}

TEST_F(ReadNumaTopologyTest, OnlyCpusThatMayBeUsed) {
  WriteTwoNodes();
  const auto both = Read({3, 4, 9});
  ASSERT_THAT(both, IsOk());
  EXPECT_THAT(both->nodes[0].cpus, ElementsAre(3));
  EXPECT_THAT(both->nodes[1].cpus, ElementsAre(4));
  const auto second = Read({5});
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(second->NodesWithMemory(), ElementsAre(1));
  EXPECT_THAT(Read({9}),
              IsError(absl::StatusCode::kNotFound, HasSubstr(dir_.path())));
}

TEST_F(ReadNumaTopologyTest, OfflineNodesAreLeftOut) {
  WriteTwoNodes();
  Write("online", "1\n");
  Write("node0/cpulist", "garbage\n");
  const auto topology = Read(kTwelve);
  ASSERT_THAT(topology, IsOk());
  EXPECT_THAT(topology->NodesWithMemory(), ElementsAre(1));
}

TEST_F(ReadNumaTopologyTest, NodesWithoutMemoryOrCpus) {
  Write("online", "0-2\n");
  Write("has_memory", "0,2\n");
  Write("node0/cpulist", "0-1\n");
  Write("node1/cpulist", "2-3\n");
  Write("node2/cpulist", "\n");
  const auto topology = Read(kTwelve);
  ASSERT_THAT(topology, IsOk());
  ASSERT_EQ(topology->nodes.size(), 2U);
  EXPECT_FALSE(topology->nodes[1].has_memory);
  EXPECT_THAT(topology->NodesWithMemory(), ElementsAre(0));
}

TEST_F(ReadNumaTopologyTest, KernelsThatDoNotTellWhichHaveMemory) {
  WriteTwoNodes();
  std::filesystem::remove(dir_.path() + "/has_memory");
  const auto topology = Read(kTwelve);
  ASSERT_THAT(topology, IsOk());
  EXPECT_THAT(topology->NodesWithMemory(), ElementsAre(0, 1));
}

TEST_F(ReadNumaTopologyTest, MissingFilesAreNotFound) {
  EXPECT_THAT(Read(kTwelve),
              IsError(absl::StatusCode::kNotFound, HasSubstr("/online")));
  Write("online", "0\n");
  EXPECT_THAT(Read(kTwelve), IsError(absl::StatusCode::kNotFound,
                                     HasSubstr("/node0/cpulist")));
}

TEST_F(ReadNumaTopologyTest, GarbageIsRefused) {
  for (const char* file : {"online", "has_memory", "node1/cpulist"}) {
    for (const std::string& garbage :
         {std::string("0-"), std::string("\xFF\xFE"), std::string(1 << 17, '1'),
          std::string("0\n\n")}) {
      WriteTwoNodes();
      Write(file, garbage);
      EXPECT_THAT(Read(kTwelve),
                  IsError(absl::StatusCode::kInvalidArgument, HasSubstr(file)));
    }
  }
}

TEST(NumaTest, ThisMachineHasANodeWithTheCpusOfThisThread) {
  const NumaTopology topology = ThisNumaTopology();
  ASSERT_FALSE(topology.nodes.empty());
  std::vector<int> cpus;
  for (const NumaTopology::Node& node : topology.nodes) {
    cpus.insert(cpus.end(), node.cpus.begin(), node.cpus.end());
  }
  std::sort(cpus.begin(), cpus.end());
  EXPECT_THAT(cpus, Not(IsEmpty()));
  EXPECT_EQ(cpus, UsableCpus());
}

TEST(NumaTest, FreshPagesAreInterleaved) {
  auto buffer = PageBuffer::Allocate(5 << 20);
  ASSERT_THAT(buffer, IsOk());
  const std::vector<int> nodes = ThisNumaTopology().NodesWithMemory();
  const absl::Status status = InterleaveOverNodes(buffer->bytes(), nodes);
  if (absl::IsPermissionDenied(status) || absl::IsUnimplemented(status)) {
    GTEST_SKIP() << "mbind is not permitted here: " << status;
  }
  ASSERT_THAT(status, IsOk());
  for (const size_t at : {size_t{0}, buffer->bytes().size() - 1}) {
    int policy = -1;
    ASSERT_EQ(syscall(SYS_get_mempolicy, &policy, nullptr, 0,
                      buffer->bytes().data() + at, MPOL_F_ADDR),
              0);
    EXPECT_EQ(policy, MPOL_INTERLEAVE);
  }
  std::memset(buffer->bytes().data(), 1, buffer->bytes().size());
  EXPECT_THAT(InterleaveOverNodes({}, nodes), IsOk());
}

TEST(NumaTest, NodesThatCannotBeAreRefused) {
  auto buffer = PageBuffer::Allocate(4096);
  ASSERT_THAT(buffer, IsOk());
  for (const std::vector<int>& nodes :
       {std::vector<int>{}, {-1}, {0, 1024}, {65535}}) {
    EXPECT_THAT(InterleaveOverNodes(buffer->bytes(), nodes),
                IsError(absl::StatusCode::kInvalidArgument, HasSubstr("node")));
  }
}

}  // namespace
}  // namespace engram
