#include "engram_client/ctl/plan_input.h"

#include "core/model/presets.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/engram_client/ctl/made_up_probes.h"

namespace engram::ctl {
namespace {

using absl::StatusCode;
using test::IsError;
using test::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> Names(const std::vector<PlacementMember>& members) {
  std::vector<std::string> names;
  for (const PlacementMember& member : members) names.push_back(member.name);
  return names;
}

TEST(PlanInputTest, TheFullTable) {
  const absl::StatusOr<PlannedTable> table = TableOfPreset("v41");
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->name, "engram");
  EXPECT_EQ(table->info.partition_rows, 65536U);
  EXPECT_EQ(table->info.row_format.row_bytes(), 264U);
  ASSERT_THAT(table->info.layers, SizeIs(2));
  EXPECT_EQ(table->info.layers[0].partition_count, 5860U);
  EXPECT_THAT(TableOfPreset("huge"),
              IsError(StatusCode::kInvalidArgument, HasSubstr("huge")));
}

TEST(PlanInputTest, AManifestGivesTheSameAsItsPreset) {
  const PlannedTable preset = *TableOfPreset("tiny");
  std::vector<ManifestLayer> layers;
  for (const TableInfo::Layer& layer : preset.info.layers) {
    layers.push_back({layer.layer_id, layer.row_count, {}});
  }
  const absl::StatusOr<Manifest> manifest =
      Manifest::Create(preset.info.config, preset.info.row_format,
                       preset.info.partition_rows, layers, "synthetic:1");
  ASSERT_THAT(manifest, IsOk());
  const PlannedTable table = TableOfManifest(*manifest);
  EXPECT_EQ(table.name, preset.name);
  EXPECT_EQ(table.info.version, manifest->version());
  ASSERT_EQ(table.info.layers.size(), preset.info.layers.size());
  for (size_t i = 0; i < table.info.layers.size(); ++i) {
    EXPECT_EQ(table.info.layers[i].partition_count,
              manifest->partition_count(i));
    EXPECT_EQ(table.info.layers[i].partition_count,
              preset.info.layers[i].partition_count);
  }
}

TEST(PlanInputTest, KeepsLayers) {
  PlannedTable table = *TableOfPreset("v41");
  ASSERT_THAT(KeepLayers("", table.info), IsOk());
  EXPECT_THAT(table.info.layers, SizeIs(2));
  EXPECT_THAT(KeepLayers("1,2", table.info),
              IsError(StatusCode::kNotFound, HasSubstr("layer 2")));
  EXPECT_THAT(KeepLayers("1,x", table.info),
              IsError(StatusCode::kInvalidArgument, HasSubstr("\"x\"")));
  ASSERT_THAT(KeepLayers("14", table.info), IsOk());
  ASSERT_THAT(table.info.layers, SizeIs(1));
  EXPECT_EQ(table.info.layers[0].layer_id, LayerId{14});
}

TEST(PlanInputTest, ChangesMembers) {
  const std::vector<PlacementMember> now = {{"t0"}, {"t1", 2.0}};
  const auto then = ChangeMembers(now, "t2,t3", "t0");
  ASSERT_THAT(then, IsOk());
  EXPECT_THAT(Names(*then), ElementsAre("t1", "t2", "t3"));
  EXPECT_EQ(then->at(0).capacity, 2.0);
  EXPECT_EQ(then->at(1).capacity, 1.0);
  EXPECT_THAT(ChangeMembers(now, "t1", ""),
              IsError(StatusCode::kInvalidArgument, HasSubstr("--add t1")));
  EXPECT_THAT(ChangeMembers(now, "t4,t4", ""),
              IsError(StatusCode::kInvalidArgument, HasSubstr("--add t4")));
  EXPECT_THAT(ChangeMembers(now, "", "t9"),
              IsError(StatusCode::kInvalidArgument, HasSubstr("--remove t9")));
  EXPECT_THAT(ChangeMembers(now, "a b", ""),
              IsError(StatusCode::kInvalidArgument, HasSubstr("a b")));
}

TEST(PresentOfTest, TheViewOfAll) {
  const auto present =
      PresentOf({Unreachable("gone:1"), Seeing("t0", {"t0", "t1"}),
                 Seeing("t1", {"t0", "t1"})});
  ASSERT_THAT(present, IsOk());
  EXPECT_THAT(Names(present->ownership.members), ElementsAre("t0", "t1"));
  EXPECT_EQ(present->ownership.replicas, 2U);
  EXPECT_EQ(present->address, "t0:7001");
  EXPECT_THAT(present->notes, IsEmpty());
}

TEST(PresentOfTest, SaysThatTheClusterIsOnTheMove) {
  ServerProbe late = Seeing("t2", {"t0"});
  MovesOf(late).set_to_load(1234);
  const auto present =
      PresentOf({late, Seeing("t0", {"t0", "t1"}), Seeing("t1", {"t0", "t1"})});
  ASSERT_THAT(present, IsOk());
  EXPECT_EQ(present->address, "t0:7001");
  EXPECT_THAT(present->notes,
              ElementsAre(HasSubstr("planned from that of t0, t1"),
                          HasSubstr("1,234 partitions still to load")));
}

TEST(PresentOfTest, SaysWhyThereIsNone) {
  EXPECT_THAT(PresentOf({Unreachable("gone:1")}),
              IsError(StatusCode::kUnavailable, HasSubstr("gone:1: refused")));
  EXPECT_THAT(PresentOf({Server("t0", 1, {true})}),
              IsError(StatusCode::kUnimplemented, HasSubstr("--from")));
  ServerProbe forming = Seeing("t0", {});
  forming.exchange->set_view_digest("");
  EXPECT_THAT(PresentOf({forming}), IsError(StatusCode::kFailedPrecondition,
                                            HasSubstr("has a view")));
  ServerProbe other = Seeing("t1", {"t0", "t1"});
  other.version = "another";
  EXPECT_THAT(PresentOf({Seeing("t0", {"t0", "t1"}), other}),
              IsError(StatusCode::kFailedPrecondition,
                      HasSubstr("2 different tables")));
}

TEST(OwnedOtherwiseTest, ComparesWithWhatServersSay) {
  MovePlan plan;
  plan.members = {{.name = "t0"}, {.name = "t1"}, {.name = "t2"}};
  plan.members[0].now.owned.partitions = 4;
  plan.members[1].now.owned.partitions = 5;
  EXPECT_THAT(OwnedOtherwise({Seeing("t0", {}), Seeing("t1", {})}, plan),
              ElementsAre(HasSubstr("t1 says that it owns 4 partitions, the "
                                    "plan gives it 5")));
}

}  // namespace
}  // namespace engram::ctl
