#include "engram_client/ctl/status_probe.h"

#include "absl/time/clock.h"
#include "engram_client/ctl/table_calls.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/engram_client/ctl/fake_cluster_server.h"

namespace engram::ctl {
namespace {

using absl::StatusCode;
using test::IsError;
using test::IsOk;
using testing::ElementsAre;
using testing::Eq;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr absl::Duration kTimeout = absl::Seconds(20);

class StatusProbeTest : public testing::Test {
 protected:
  std::string Address(const std::string& name) const {
    return "unix:" + dir_.File(name);
  }

 private:
  const test::TempDir dir_;
};

TEST_F(StatusProbeTest, ReadsWhatServersSay) {
  FakeClusterServer server(Address("t0"), "t0", "\x82\x02");
  server.Sees("t0", Address("t0"));
  server.exchange.set_view_digest("digest");
  const std::vector<ServerProbe> probes =
      ProbeServers({Address("t0"), Address("nobody")}, absl::Now() + kTimeout);
  ASSERT_THAT(probes, SizeIs(2));
  EXPECT_EQ(probes[0].error, "");
  EXPECT_EQ(probes[0].name, "t0");
  EXPECT_TRUE(probes[0].ready);
  EXPECT_EQ(probes[0].partitions_held(), 3U);
  ASSERT_TRUE(probes[0].exchange.has_value());
  EXPECT_EQ(probes[0].exchange->view_digest(), "digest");
  EXPECT_THAT(probes[1].error, Not(IsEmpty()));
  EXPECT_EQ(probes[1].address, Address("nobody"));
}

TEST_F(StatusProbeTest, AServerOfAnOlderReleaseTellsLess) {
  FakeClusterServer server(Address("t0"), "t0", "\x82\x02");
  server.draining = true;
  const std::vector<ServerProbe> probes =
      ProbeCluster({Address("t0")}, kTimeout, {});
  ASSERT_THAT(probes, SizeIs(1));
  EXPECT_EQ(probes[0].error, "");
  EXPECT_FALSE(probes[0].exchange.has_value());
  EXPECT_TRUE(probes[0].draining);
  EXPECT_EQ(probes[0].partitions_held(), 3U);
}

// t0 knows t1, which knows t2; t3 cannot be reached.
TEST_F(StatusProbeTest, FindsTheOtherMembers) {
  FakeClusterServer t0(Address("t0"), "t0", "\x01\x01");
  FakeClusterServer t1(Address("t1"), "t1", "\x01\x01");
  FakeClusterServer t2(Address("t2"), "t2", "\x01\x01");
  t0.Sees("t0", Address("t0"));
  t0.Sees("t1", Address("t1"));
  t0.Sees("t3", Address("t3"));
  t1.Sees("t2", Address("t2"));
  t2.Sees("t2", Address("t2"));
  const std::vector<ServerProbe> probes =
      ProbeCluster({Address("t0")}, kTimeout, {});
  std::vector<std::string> names;
  for (const ServerProbe& probe : probes) names.push_back(probe.name);
  ASSERT_THAT(names, ElementsAre("t0", "t1", "t3", "t2"));
  EXPECT_FALSE(probes[0].found);
  EXPECT_TRUE(probes[1].found);
  EXPECT_THAT(probes[2].error, Not(IsEmpty()));
}

TEST_F(StatusProbeTest, AMemberThatMovedIsOneServer) {
  FakeClusterServer t0(Address("t0"), "t0", "\x01\x01");
  FakeClusterServer t1(Address("t1"), "t1", "\x01\x01");
  t0.Sees("t1", Address("t1-before"));
  t1.Sees("t0", Address("t0"));
  t1.Sees("t1", Address("t1"));
  EXPECT_THAT(ProbeCluster({Address("t0"), Address("t1")}, kTimeout, {}),
              SizeIs(2));
}

TEST_F(StatusProbeTest, AsksThoseThatWereFoundBefore) {
  FakeClusterServer t0(Address("t0"), "t0", "\x01\x01");
  FakeClusterServer t1(Address("t1"), "t1", "\x01\x01");
  t0.Sees("t0", Address("t0"));
  t1.Sees("t0", Address("t0"));
  ServerProbe leaving{.address = Address("t1"), .found = true, .name = "t1"};
  ServerProbe gone{.address = Address("t2"), .found = true, .name = "t2"};
  ServerProbe moved{.address = Address("before"), .found = true, .name = "t0"};
  const std::vector<ServerProbe> probes =
      ProbeCluster({Address("t0")}, kTimeout, {leaving, gone, moved});
  ASSERT_THAT(probes, SizeIs(2));
  EXPECT_EQ(probes[1].name, "t1");
  EXPECT_EQ(probes[1].error, "");
  EXPECT_TRUE(probes[1].found);
}

TEST_F(StatusProbeTest, TellsAServerToLeave) {
  const FakeClusterServer server(Address("t0"), "t0", "\x01\x01");
  TableCalls calls(Address("t0"));
  EXPECT_THAT(calls.Leave("t0", absl::Now() + kTimeout), IsOk());
  EXPECT_THAT(calls.Leave("t1", absl::Now() + kTimeout),
              IsError(StatusCode::kNotFound, Eq("another server")));
}

v1::GetTableResponse TableOf(uint32_t layer_id, uint32_t partition_count) {
  v1::GetTableResponse table;
  v1::LayerInfo& layer = *table.add_layers();
  layer.set_layer_id(layer_id);
  layer.set_partition_count(partition_count);
  return table;
}

LayerPartitionsList HeldOf(uint32_t layer_id, uint32_t partition_count,
                           const std::string& bitmap) {
  LayerPartitionsList list;
  v1::LayerPartitions& layer = *list.Add();
  layer.set_layer_id(layer_id);
  layer.set_partition_count(partition_count);
  layer.set_bitmap(bitmap);
  return list;
}

TEST(HeldPartitionsTest, ReadsTheBitmap) {
  const auto layers =
      HeldPartitions(TableOf(14, 10), HeldOf(14, 10, "\x82\x02"));
  ASSERT_THAT(layers, IsOk());
  ASSERT_THAT(*layers, SizeIs(1));
  EXPECT_EQ((*layers)[0].layer_id, 14U);
  EXPECT_THAT((*layers)[0].held, ElementsAre(false, true, false, false, false,
                                             false, false, true, false, true));
}

TEST(HeldPartitionsTest, RefusesWhatDoesNotMatch) {
  EXPECT_THAT(HeldPartitions(TableOf(14, 10), HeldOf(14, 10, "\x82")),
              IsError(StatusCode::kInvalidArgument, HasSubstr("1 bytes")));
  EXPECT_THAT(HeldPartitions(TableOf(14, 8), HeldOf(1, 8, "\x82")),
              IsError(StatusCode::kInvalidArgument, HasSubstr("layer 1")));
  EXPECT_THAT(HeldPartitions(TableOf(1, 4000000000), {}),
              IsError(StatusCode::kInvalidArgument, HasSubstr("4000000000")));
}

}  // namespace
}  // namespace engram::ctl
