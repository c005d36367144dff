#include "engram_client/ctl/heat_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/wire/heat_hash.h"
#include "tests/testing/status_matchers.h"

namespace engram::ctl {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::GetTableResponse Table() {
  v1::GetTableResponse table;
  table.set_version("v");
  table.set_server_name("t0");
  table.set_instance_id(7);
  table.mutable_row_format()->set_row_bytes(264);
  for (const uint32_t id : {1, 14}) {
    v1::LayerInfo& layer = *table.add_layers();
    layer.set_layer_id(id);
    layer.set_row_count(100);
    layer.set_partition_count(4);
  }
  return table;
}

v1::RecordHeatResponse Partitions(uint32_t layer, uint32_t first,
                                  const std::vector<uint64_t>& lookups) {
  v1::RecordHeatResponse message;
  message.mutable_partitions()->set_layer_id(layer);
  message.mutable_partitions()->set_first_partition(first);
  message.mutable_partitions()->mutable_lookups()->Assign(lookups.begin(),
                                                          lookups.end());
  return message;
}

v1::RecordHeatResponse Sample(uint32_t layer, const std::vector<uint32_t>& rows,
                              const std::vector<uint64_t>& lookups) {
  v1::RecordHeatResponse message;
  auto& counts = *message.mutable_sample()->add_layers();
  counts.set_layer_id(layer);
  counts.mutable_row_ids()->Assign(rows.begin(), rows.end());
  counts.mutable_lookups()->Assign(lookups.begin(), lookups.end());
  return message;
}

v1::RecordHeatResponse Totals() {
  v1::RecordHeatResponse message;
  message.mutable_totals()->set_elapsed_ms(2000);
  message.mutable_totals()->set_last_hash(5);
  message.mutable_totals()->set_lookups_per_hit(16);
  message.mutable_totals()->set_hot_missed(32);
  return message;
}

TEST(HeatReaderTest, TakesWhatAServerSays) {
  HeatReader reader;
  ASSERT_THAT(reader.SetTable(Table()), IsOk());
  v1::RecordHeatResponse progress;
  progress.mutable_progress()->set_lookups(3);
  EXPECT_THAT(reader.Add(progress), IsOk());
  EXPECT_THAT(reader.Finish(),
              IsError(absl::StatusCode::kFailedPrecondition,
                      HasSubstr("without telling what it counted")));
  ASSERT_THAT(reader.Add(Totals()), IsOk());
  ASSERT_THAT(reader.Add(Partitions(14, 0, {1, 2})), IsOk());
  ASSERT_THAT(reader.Add(Partitions(14, 2, {3, 4})), IsOk());
  ASSERT_THAT(reader.Add(Sample(14, {99, 0}, {6, 7})), IsOk());
  v1::RecordHeatResponse hot;
  *hot.mutable_hot() = Sample(1, {5}, {160}).sample();
  ASSERT_THAT(reader.Add(hot), IsOk());
  ASSERT_THAT(reader.Add({}), IsOk());  // of a later release
  EXPECT_THAT(reader.Finish(), IsOk());
  const ServerHeat& heat = reader.heat();
  EXPECT_EQ(heat.name, "t0");
  EXPECT_EQ(heat.version, "v");
  EXPECT_EQ(heat.row_bytes, 264U);
  EXPECT_EQ(heat.elapsed_ms, 2000U);
  EXPECT_EQ(heat.last_hash, 5U);
  EXPECT_EQ(heat.hot_missed, 32U);
  EXPECT_EQ(heat.lookups(), 10U);
  EXPECT_THAT(heat.layers[0].partition_lookups, ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(heat.layers[1].partition_lookups, ElementsAre(1, 2, 3, 4));
  ASSERT_EQ(heat.sample.size(), 2U);
  EXPECT_EQ(heat.sample[0].key, HeatKey(LayerId{14}, 99));
  EXPECT_EQ(heat.sample[1].lookups, 7U);
  ASSERT_EQ(heat.hot.size(), 1U);
  EXPECT_EQ(heat.hot[0].lookups, 160U);
}

TEST(HeatReaderTest, RefusesWhatTheTableDoesNotHave) {
  HeatReader reader;
  ASSERT_THAT(reader.SetTable(Table()), IsOk());
  for (const v1::RecordHeatResponse& message :
       {Partitions(2, 0, {1}), Partitions(1, 3, {1, 2}),
        Partitions(1, ~0U, {1}), Sample(2, {1}, {1}), Sample(1, {100}, {1}),
        Sample(1, {1, 2}, {1}), Sample(1, {1}, {1, 2})}) {
    EXPECT_EQ(reader.Add(message).code(), absl::StatusCode::kInvalidArgument)
        << message.DebugString();
  }
}

TEST(HeatReaderTest, IsBounded) {
  v1::GetTableResponse table = Table();
  table.mutable_layers(1)->set_partition_count(1 << 24);
  EXPECT_THAT(HeatReader().SetTable(table),
              IsError(absl::StatusCode::kInvalidArgument,
                      HasSubstr("the limit is 16777216")));
  table = Table();
  table.mutable_layers(1)->set_layer_id(1);
  EXPECT_THAT(HeatReader().SetTable(table),
              IsError(absl::StatusCode::kInvalidArgument, HasSubstr("twice")));
  HeatReader reader;
  ASSERT_THAT(reader.SetTable(Table()), IsOk());
  const v1::RecordHeatResponse many = Sample(
      1, std::vector<uint32_t>(1 << 20, 3), std::vector<uint64_t>(1 << 20, 1));
  for (int i = 0; i < 4; ++i) ASSERT_THAT(reader.Add(many), IsOk());
  EXPECT_THAT(reader.Add(Sample(1, {1}, {1})),
              IsError(absl::StatusCode::kInvalidArgument,
                      HasSubstr("more than 4194304")));
}

}  // namespace
}  // namespace engram::ctl
