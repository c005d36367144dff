#include "engram_client/rpc/table_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/wire/error_detail.h"
#include "engram_client/rpc/fake_table_server.h"

namespace engram {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

v1::GetTableResponse ServerOf(const std::string& name, uint64_t instance_id,
                              const std::string& version = "v1") {
  FakeTable table;
  table.version = version;
  return table.Response(name, instance_id);
}

class TableIdentityTest : public ::testing::Test {
 protected:
  TableIdentity identity_{{"one:1", "two:2"}, ""};
};

TEST_F(TableIdentityTest, TheFirstServerSaysWhichTableItIs) {
  EXPECT_EQ(identity_.table(), nullptr);
  ASSERT_TRUE(identity_.Admit(0, ServerOf("a", 1)).ok());
  const TableInfo* const table = identity_.table();
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->version, "v1");
  EXPECT_EQ(table->row_format.row_bytes(), FakeTable::kRowBytes);
  EXPECT_EQ(table->layers.size(), 2u);
  EXPECT_EQ(table->layers[1].layer_id, LayerId{14});
  EXPECT_TRUE(identity_.Admit(1, ServerOf("b", 2)).ok());
  EXPECT_EQ(identity_.table(), table);
  EXPECT_TRUE(identity_.conflict().ok());
}

TEST_F(TableIdentityTest, AnotherVersionIsNeverMixedIn) {
  ASSERT_TRUE(identity_.Admit(0, ServerOf("a", 1, "v1")).ok());
  const absl::Status status = identity_.Admit(1, ServerOf("b", 2, "v2"));
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("v1"), HasSubstr("v2"), HasSubstr("one:1"),
                    HasSubstr("two:2")));
  EXPECT_EQ(identity_.conflict(), status);
  // Also once the first server is gone: clients stay with one table.
  identity_.Release(0);
  EXPECT_FALSE(identity_.Admit(1, ServerOf("b", 2, "v2")).ok());
}

TEST_F(TableIdentityTest, TwoServersOfOneName) {
  ASSERT_TRUE(identity_.Admit(0, ServerOf("a", 1)).ok());
  const absl::Status status = identity_.Admit(1, ServerOf("a", 2));
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("one name, a"), HasSubstr("one:1"), HasSubstr("two:2")));
  // One that moved is no second one.
  identity_.Release(0);
  EXPECT_TRUE(identity_.Admit(1, ServerOf("a", 2)).ok());
}

TEST_F(TableIdentityTest, OneServerReachedTwiceAndARestartAreFine) {
  ASSERT_TRUE(identity_.Admit(0, ServerOf("a", 1)).ok());
  EXPECT_TRUE(identity_.Admit(1, ServerOf("a", 1)).ok());
  identity_.Release(1);
  EXPECT_TRUE(identity_.Admit(0, ServerOf("a", 7)).ok());
}

TEST_F(TableIdentityTest, AServerThatLeavesGivesUpItsName) {
  ASSERT_TRUE(identity_.Admit(0, ServerOf("a", 1)).ok());
  EXPECT_FALSE(identity_.HasSuccessor(0));
  identity_.SetLeaving(0, true);
  EXPECT_TRUE(identity_.Admit(1, ServerOf("a", 2)).ok());
  EXPECT_TRUE(identity_.HasSuccessor(0));
  EXPECT_FALSE(identity_.HasSuccessor(1));
  // It does not take the name back, and that is no conflict.
  identity_.Release(0);
  EXPECT_FALSE(identity_.HasSuccessor(0));
  EXPECT_TRUE(absl::IsFailedPrecondition(identity_.Admit(0, ServerOf("a", 3))));
  EXPECT_TRUE(identity_.conflict().ok());
}

TEST_F(TableIdentityTest, ASlotMayHaveAnotherServer) {
  ASSERT_TRUE(identity_.Admit(0, ServerOf("a", 1)).ok());
  identity_.SetLeaving(0, true);
  identity_.Remove(0);
  identity_.Add(0, "three:3");
  EXPECT_TRUE(identity_.Admit(1, ServerOf("a", 2)).ok());
  EXPECT_THAT(std::string(identity_.Admit(0, ServerOf("a", 3)).message()),
              HasSubstr("three:3"));
  EXPECT_FALSE(identity_.conflict().ok());
}

TEST(TableIdentityExpectedTest, RefusesAnUnexpectedVersion) {
  TableIdentity identity({"one:1"}, "v9");
  const absl::Status status = identity.Admit(0, ServerOf("a", 1, "v1"));
  EXPECT_EQ(ReasonOf(status), ErrorReason::kWrongTable);
  EXPECT_EQ(MetadataOf(status, "asked"), "v9");
  EXPECT_EQ(MetadataOf(status, "served"), "v1");
  EXPECT_EQ(identity.table(), nullptr);
}

TEST(TableIdentityExpectedTest, AnotherVersionIsAConflictOnlyWhereAllHaveIt) {
  TableIdentity identity({"one:1", "two:2"}, "v9");
  EXPECT_FALSE(identity.Admit(0, ServerOf("a", 1, "v1")).ok());
  EXPECT_TRUE(identity.conflict().ok());
  EXPECT_FALSE(identity.Admit(0, ServerOf("a", 1, "v1")).ok());
  EXPECT_TRUE(identity.conflict().ok());
  EXPECT_FALSE(identity.Admit(1, ServerOf("b", 2, "v2")).ok());
  EXPECT_EQ(ReasonOf(identity.conflict()), ErrorReason::kWrongTable);
  EXPECT_EQ(MetadataOf(identity.conflict(), "served"), "v1");
  EXPECT_TRUE(identity.Admit(1, ServerOf("b", 3, "v9")).ok());
  EXPECT_TRUE(identity.conflict().ok());
  // Clients stay with the table they have.
  identity.Release(1);
  EXPECT_FALSE(identity.Admit(1, ServerOf("b", 2, "v2")).ok());
  EXPECT_TRUE(identity.conflict().ok());
}

TEST(TableIdentityExpectedTest, OnlyServersThatThereAreCount) {
  TableIdentity identity({}, "v9");
  EXPECT_TRUE(identity.conflict().ok());
  identity.Add(2, "three:3");
  EXPECT_FALSE(identity.Admit(2, ServerOf("c", 3, "v1")).ok());
  EXPECT_EQ(ReasonOf(identity.conflict()), ErrorReason::kWrongTable);
  identity.Add(0, "one:1");
  EXPECT_TRUE(identity.conflict().ok());
  identity.Remove(0);
  EXPECT_EQ(ReasonOf(identity.conflict()), ErrorReason::kWrongTable);
  identity.Remove(2);
  EXPECT_TRUE(identity.conflict().ok());
}

TEST(ParseTableInfoTest, RefusesWhatDoesNotHoldTogether) {
  const auto refused = [](auto change) {
    v1::GetTableResponse response = ServerOf("a", 1);
    change(response);
    return absl::IsInvalidArgument(ParseTableInfo(response).status());
  };
  using R = v1::GetTableResponse;
  EXPECT_TRUE(ParseTableInfo(ServerOf("a", 1)).ok());
  EXPECT_TRUE(refused([](R& r) { r.clear_version(); }));
  EXPECT_TRUE(refused([](R& r) { r.clear_server_name(); }));
  EXPECT_TRUE(refused([](R& r) { r.set_config_json("{"); }));
  EXPECT_TRUE(refused([](R& r) { r.clear_row_format(); }));
  EXPECT_TRUE(refused([](R& r) { r.mutable_row_format()->set_row_bytes(32); }));
  EXPECT_TRUE(refused([](R& r) { r.set_partition_rows(0); }));
  EXPECT_TRUE(refused([](R& r) { r.set_partition_rows(24); }));
  EXPECT_TRUE(refused([](R& r) { r.clear_layers(); }));
  EXPECT_TRUE(refused([](R& r) { *r.add_layers() = r.layers(0); }));
  EXPECT_TRUE(refused([](R& r) { r.mutable_layers(0)->set_row_count(0); }));
  EXPECT_TRUE(refused(
      [](R& r) { r.mutable_layers(0)->set_row_count(uint64_t{1} << 33); }));
  EXPECT_TRUE(
      refused([](R& r) { r.mutable_layers(0)->set_partition_count(1); }));
}

}  // namespace
}  // namespace engram
