#include "engram_client/ctl/wanted_partitions.h"

#include "table_server/rebalance/cluster_view.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram::ctl {
namespace {

using test::IsError;
using test::IsOk;
using ::testing::HasSubstr;

const Manifest& SmallManifest() { return test::SmallManifest(); }

TEST(WantedPartitionsTest, AllOfAllLayersOrOfSome) {
  const auto all = WantedPartitions(SmallManifest(), {});
  ASSERT_THAT(all, IsOk());
  EXPECT_EQ(all->size(), test::kAll);
  EXPECT_TRUE(std::is_sorted(all->begin(), all->end()));
  const auto one = WantedPartitions(SmallManifest(), {.layers = {LayerId{14}}});
  ASSERT_THAT(one, IsOk());
  EXPECT_EQ(one->size(), SmallManifest().partition_count(1));
  EXPECT_EQ(one->front(), (PartitionRef{LayerId{14}, PartitionId{0}}));
}

TEST(WantedPartitionsTest, RefusesLayersThatAreNotThereOrStandTwice) {
  EXPECT_THAT(
      WantedPartitions(SmallManifest(), {.layers = {LayerId{2}}}),
      IsError(absl::StatusCode::kInvalidArgument, HasSubstr("layer 2")));
  EXPECT_THAT(
      WantedPartitions(SmallManifest(), {.layers = {LayerId{1}, LayerId{1}}}),
      IsError(absl::StatusCode::kInvalidArgument, HasSubstr("twice")));
}

// What a server would load by the same flags.
TEST(WantedPartitionsTest, WhatAServerOwns) {
  std::vector<Member> members = test::Members({"a", "b", "c"});
  members[1].capacity = 2.5;
  for (const std::vector<LayerId>& layers :
       {std::vector<LayerId>{}, {LayerId{14}}, {LayerId{14}, LayerId{1}}}) {
    for (const uint32_t replicas : {1u, 2u, 5u}) {
      for (const std::string name : {"a", "b", "c"}) {
        const auto view =
            ClusterView::Create(SmallManifest(), {.self = name,
                                                  .members = members,
                                                  .replicas = replicas,
                                                  .layers = layers});
        ASSERT_THAT(view, IsOk());
        const auto wanted =
            WantedPartitions(SmallManifest(), {.layers = layers,
                                               .members = members,
                                               .server_name = name,
                                               .replicas = replicas});
        ASSERT_THAT(wanted, IsOk());
        EXPECT_EQ(*wanted, (*view)->owned()) << name << replicas;
        EXPECT_FALSE(wanted->empty());
      }
    }
  }
}

TEST(WantedPartitionsTest, WhoIsNoMemberOwnsNothing) {
  EXPECT_THAT(
      WantedPartitions(SmallManifest(), {.members = test::Members({"a", "b"}),
                                         .server_name = "c"}),
      IsError(absl::StatusCode::kInvalidArgument, HasSubstr("c")));
}

}  // namespace
}  // namespace engram::ctl
