#include "table_server/rebalance/cluster_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram {
namespace {

using test::FullManifest;
using test::IsError;
using test::Members;
using test::SmallManifest;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::shared_ptr<const ClusterView> View(
    ClusterView::Options options, const Manifest& manifest = SmallManifest()) {
  return ClusterView::Create(manifest, std::move(options)).value();
}

ClusterView::Options ThreeServers() {
  return {.self = "b", .members = Members({"a", "b", "c"}), .replicas = 2};
}

TEST(ClusterViewTest, OwnersAreThoseOfThePlacement) {
  const auto view = View(ThreeServers(), FullManifest());
  const Placement placement =
      Placement::Create({.table = FullManifest().table(),
                         .layers = {{LayerId{1}, 5860}, {LayerId{14}, 5860}},
                         .members = {{"a"}, {"b"}, {"c"}},
                         .replicas = 2})
          .value();
  EXPECT_EQ(view->owned(), placement.OwnedBy("b").value());
  for (size_t layer = 0; layer < 2; ++layer) {
    for (uint32_t p = 0; p < 5860; ++p) {
      const auto owners = view->Owners(layer, PartitionId{p});
      EXPECT_EQ(owners, placement.Owners(layer, PartitionId{p}));
      EXPECT_EQ(view->Owns(layer, PartitionId{p}),
                std::find(owners.begin(), owners.end(), 1U) != owners.end());
    }
  }
}

TEST(ClusterViewTest, MembersAreSortedAndIndexedByOwners) {
  ClusterView::Options options = ThreeServers();
  std::reverse(options.members.begin(), options.members.end());
  const auto view = View(options);
  EXPECT_EQ(view->members(), Members({"a", "b", "c"}));
  EXPECT_EQ(view->replicas(), 2U);
  EXPECT_EQ(view->digest(), View(ThreeServers())->digest());
  EXPECT_EQ(view->owned(), View(ThreeServers())->owned());
}

TEST(ClusterViewTest, CapacitiesCount) {
  ClusterView::Options options{.self = "a", .members = Members({"a", "b"})};
  options.members[0].capacity = 3;
  const auto view = View(options, FullManifest());
  EXPECT_NEAR(static_cast<double>(view->owned().size()), 0.75 * 11720,
              0.03 * 11720);
}

TEST(ClusterViewTest, ANonMemberOwnsNothing) {
  ClusterView::Options options = ThreeServers();
  options.self = "d";
  const auto view = View(options);
  EXPECT_THAT(view->owned(), IsEmpty());
  EXPECT_FALSE(view->Owns(1, PartitionId{6}));
  EXPECT_EQ(view->Owners(1, PartitionId{6}).size(), 2U);
  EXPECT_EQ(view->digest(), View(ThreeServers())->digest());
}

TEST(ClusterViewTest, WithoutMembersNobodyOwnsAnything) {
  const auto view = View({.self = "a", .members = {}});
  EXPECT_THAT(view->owned(), IsEmpty());
  EXPECT_THAT(view->Owners(0, PartitionId{0}), IsEmpty());
  EXPECT_FALSE(view->Owns(0, PartitionId{0}));
}

TEST(ClusterViewTest, OnlyTheLayersAskedForArePlaced) {
  ClusterView::Options options = ThreeServers();
  options.layers = {LayerId{14}};
  const auto view = View(options);
  EXPECT_FALSE(view->IsPlaced(0));
  EXPECT_TRUE(view->IsPlaced(1));
  EXPECT_THAT(view->Owners(0, PartitionId{0}), IsEmpty());
  EXPECT_FALSE(view->Owns(0, PartitionId{0}));
  const auto all = View(ThreeServers());
  for (uint32_t p = 0; p < 8; ++p) {  // whatever other layers are placed
    EXPECT_EQ(view->Owners(1, PartitionId{p}), all->Owners(1, PartitionId{p}));
  }
  options.layers = {LayerId{14}, LayerId{1}};
  EXPECT_EQ(View(options)->digest(), all->digest());
}

TEST(ClusterViewTest, DigestTellsApartWhatMatters) {
  std::set<std::string> digests;
  const auto add = [&](const ClusterView::Options& options,
                       const Manifest& manifest = SmallManifest()) {
    EXPECT_TRUE(digests.insert(View(options, manifest)->digest()).second);
  };
  ClusterView::Options options = ThreeServers();
  add(options);
  add(options, FullManifest());
  options.replicas = 1;
  add(options);
  options = ThreeServers();
  options.layers = {LayerId{1}};
  add(options);
  options.layers = {LayerId{14}};
  add(options);
  options = ThreeServers();
  options.members[2].capacity = 1.0000001;
  add(options);
  for (const auto& names : std::vector<std::vector<std::string>>{
           {}, {"a"}, {"a", "b"}, {"ab", "c"}, {"a", "bc"}, {"abc"}}) {
    options.members = Members(names);
    add(options);
  }
}

TEST(ClusterViewTest, DigestIsOfNothingElse) {
  ClusterView::Options options = ThreeServers();
  options.members[0].address = "elsewhere:2";
  options.self = "c";
  EXPECT_EQ(View(options)->digest(), View(ThreeServers())->digest());
}

// Servers of two releases must agree, or none of them frees anything.
TEST(ClusterViewTest, DigestIsFixed) {
  EXPECT_EQ(View(ThreeServers())->digest(), "58e750f8cb544dcb9b32e4c2f199f393");
}

TEST(ClusterViewTest, BadOptionsAreNamed) {
  const auto create = [](ClusterView::Options options) {
    return ClusterView::Create(SmallManifest(), std::move(options));
  };
  ClusterView::Options options = ThreeServers();
  options.layers = {LayerId{2}};
  EXPECT_THAT(create(options), IsError(kInvalid, HasSubstr("layer 2")));
  options.layers = {LayerId{1}, LayerId{1}};
  EXPECT_THAT(create(options),
              IsError(kInvalid, HasSubstr("layer 1 stands twice")));
  options = ThreeServers();
  options.members[1].name = "a";
  EXPECT_THAT(create(options),
              IsError(kInvalid, HasSubstr("two members are named a")));
  options = ThreeServers();
  options.replicas = 0;
  EXPECT_THAT(create(options), IsError(kInvalid, HasSubstr("0 replicas")));
}

}  // namespace
}  // namespace engram
