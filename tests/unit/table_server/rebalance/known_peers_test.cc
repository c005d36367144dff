#include "table_server/rebalance/known_peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram {
namespace {

using test::Members;
using test::SmallManifest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Outlook = KnownPeers::Outlook;
using News = KnownPeers::News;

constexpr PartitionRef kOne{LayerId{1}, PartitionId{3}};
constexpr absl::Duration kSecond = absl::Seconds(1);

MATCHER_P2(IsHolder, name, address, "") {
  return arg.name == name && arg.address == address;
}

class KnownPeersTest : public ::testing::Test {
 protected:
  KnownPeersTest() { peers_.Retain(Members({"a", "b", "c"})); }

  static v1::ExchangeResponse ResponseOf(const std::string& digest) {
    v1::ExchangeResponse response;
    response.set_view_digest(digest);
    response.set_ready(true);
    return response;
  }
  static v1::ExchangeResponse Leaving() {
    v1::ExchangeResponse response = ResponseOf("d");
    response.set_leaving(true);
    return response;
  }
  static v1::ExchangeResponse Draining() {
    v1::ExchangeResponse response = ResponseOf("d");
    response.set_draining(true);
    return response;
  }

  const absl::Time now_ = absl::UnixEpoch();
  KnownPeers peers_{SmallManifest()};
};

TEST_F(KnownPeersTest, NothingIsKnownOfThemAtFirst) {
  EXPECT_EQ(peers_.OutlookOf("a", absl::UnixEpoch()), Outlook::kSilent);
  EXPECT_FALSE(peers_.IsHeard("a", absl::UnixEpoch()));
  EXPECT_EQ(peers_.CountOutlooks(absl::UnixEpoch()).silent, 3U);
  EXPECT_THAT(peers_.ViewsOtherThan("d", absl::UnixEpoch()), IsEmpty());
  EXPECT_THAT(peers_.HoldersOf(kOne, absl::UnixEpoch()), IsEmpty());
}

TEST_F(KnownPeersTest, TellsThatAPeerWasStartedAgain) {
  const auto heard = [&](uint64_t instance_id) {
    v1::ExchangeResponse response = ResponseOf("d");
    response.set_instance_id(instance_id);
    return peers_.Heard("a", response, {}, now_);
  };
  EXPECT_EQ(heard(7), News::kAsBefore);
  EXPECT_EQ(heard(7), News::kAsBefore);
  EXPECT_EQ(heard(8), News::kRestarted);
  EXPECT_EQ(heard(8), News::kAsBefore);
  EXPECT_EQ(heard(7), News::kIgnored);  // a late answer
  EXPECT_EQ(heard(8), News::kAsBefore);
  EXPECT_EQ(peers_.Heard("nobody", ResponseOf("d"), {}, now_), News::kIgnored);
}

TEST_F(KnownPeersTest, OutlooksAreOfThoseAskedSince) {
  peers_.Heard("a", ResponseOf("d"), {}, now_);
  peers_.Heard("b", Leaving(), {}, now_);
  peers_.Heard("c", Draining(), {}, now_);
  EXPECT_EQ(peers_.OutlookOf("a", now_), Outlook::kStays);
  EXPECT_EQ(peers_.OutlookOf("b", now_), Outlook::kGoes);
  EXPECT_EQ(peers_.OutlookOf("c", now_), Outlook::kGoes);
  EXPECT_EQ(peers_.OutlookOf("nobody", now_), Outlook::kSilent);
  KnownPeers::Outlooks outlooks = peers_.CountOutlooks(now_);
  EXPECT_EQ(outlooks.stay, 1U);
  EXPECT_EQ(outlooks.go, 2U);
  EXPECT_EQ(outlooks.silent, 0U);

  const absl::Time later = now_ + kSecond;
  peers_.Heard("c", ResponseOf("d"), {}, later);  // it came back
  EXPECT_EQ(peers_.OutlookOf("a", later), Outlook::kSilent);
  EXPECT_EQ(peers_.OutlookOf("c", later), Outlook::kStays);
  outlooks = peers_.CountOutlooks(later);
  EXPECT_EQ(outlooks.stay, 1U);
  EXPECT_EQ(outlooks.silent, 2U);
}

TEST_F(KnownPeersTest, ThoseThatAreNoPeersAnyMoreAreForgotten) {
  for (const char* name : {"a", "b", "c"}) {
    peers_.Heard(name, ResponseOf("d"), {kOne}, now_);
  }
  peers_.Retain(Members({"b", "d"}));
  EXPECT_FALSE(peers_.IsHeard("a", now_));
  EXPECT_TRUE(peers_.IsHeard("b", now_));
  EXPECT_FALSE(peers_.IsHeard("c", now_));
  EXPECT_EQ(peers_.CountOutlooks(now_).silent, 1U);  // d
  EXPECT_THAT(peers_.HoldersOf(kOne, now_), ElementsAre(IsHolder("b", "b:1")));
  peers_.Heard("a", ResponseOf("d"), {kOne}, now_);  // a late answer
  EXPECT_THAT(peers_.HoldersOf(kOne, now_), ElementsAre(IsHolder("b", "b:1")));
  peers_.Retain({});
  EXPECT_EQ(peers_.CountOutlooks(now_).silent, 0U);
  EXPECT_THAT(peers_.HoldersOf(kOne, now_), IsEmpty());
}

TEST_F(KnownPeersTest, HoldersHaveTheAddressOfNow) {
  peers_.Heard("a", ResponseOf("d"), {kOne}, now_);
  EXPECT_THAT(peers_.HoldersOf(kOne, now_), ElementsAre(IsHolder("a", "a:1")));
  std::vector<Member> moved = Members({"a", "b", "c"});
  moved.front().address = "elsewhere:2";
  peers_.Retain(moved);
  EXPECT_THAT(peers_.HoldersOf(kOne, now_),
              ElementsAre(IsHolder("a", "elsewhere:2")));
  EXPECT_THAT(peers_.HoldersOf(kOne, now_ + kSecond), IsEmpty());
}

TEST_F(KnownPeersTest, OtherViews) {
  peers_.Heard("a", ResponseOf("one"), {}, now_);
  peers_.Heard("b", ResponseOf("two"), {}, now_);
  peers_.Heard("c", ResponseOf(""), {}, now_ - kSecond);
  EXPECT_THAT(peers_.ViewsOtherThan("one", now_), ElementsAre("b"));
  EXPECT_THAT(peers_.ViewsOtherThan("one", now_ - kSecond),
              ElementsAre("b", "c"));
}

TEST_F(KnownPeersTest, OnlyHereIsWhatNoOwnerHolds) {
  const auto view =
      ClusterView::Create(
          SmallManifest(),
          {.self = "s", .members = Members({"a", "s"}), .replicas = 2})
          .value();
  EXPECT_THAT(peers_.OnlyHere({kOne}, *view, now_), ElementsAre(kOne));
  peers_.Heard("a", ResponseOf(view->digest()), {kOne}, now_);
  EXPECT_THAT(peers_.OnlyHere({kOne}, *view, now_), IsEmpty());
  EXPECT_THAT(peers_.OnlyHere({kOne}, *view, now_ + kSecond),
              ElementsAre(kOne));
}

TEST_F(KnownPeersTest, TheFirstOfFailuresInARow) {
  EXPECT_TRUE(peers_.Failed("a"));
  EXPECT_FALSE(peers_.Failed("a"));
  EXPECT_TRUE(peers_.Failed("b"));
  EXPECT_FALSE(peers_.Failed("nobody"));
  peers_.Heard("a", ResponseOf("d"), {}, now_);
  EXPECT_TRUE(peers_.Failed("a"));
  EXPECT_TRUE(peers_.IsHeard("a", now_));  // its answer counts for a while
}

}  // namespace
}  // namespace engram
