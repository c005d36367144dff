#include "table_server/rebalance/exchange_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "table_server/rebalance/departure_list.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/rebalance/rebalance_fakes.h"
#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram {
namespace {

using test::IsOk;
using test::SmallManifest;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Server "a", which owns and holds all.
class ExchangeAnswersTest : public ::testing::Test {
 protected:
  ExchangeAnswersTest() {
    hand_over_.SetView(view_);
    while (const auto ref = hand_over_.TakeLoad(absl::UnixEpoch())) {
      hand_over_.LoadEnded(*ref);
    }
  }

  v1::ExchangeResponse Ask(const v1::ExchangeRequest& request,
                           const std::vector<PartitionRef>& to_free = {}) {
    v1::ExchangeResponse response;
    response.set_server_name("a");
    EXPECT_THAT(answers_.Exchange(request, to_free, response), IsOk());
    return response;
  }
  v1::ExchangeRequest RequestOf(const std::string& digest) const {
    v1::ExchangeRequest request;
    request.set_view_digest(digest);
    return request;
  }
  static v1::ExchangeRequest Telling(
      const std::vector<MemberDeparture>& departures) {
    v1::ExchangeRequest request;
    *request.mutable_departures() = ToDepartureList(departures);
    return request;
  }
  std::vector<PartitionRef> Acknowledged(const v1::ExchangeResponse& response) {
    return FromLayerPartitions(response.acknowledged(), layers_).value();
  }

  const std::shared_ptr<const ClusterView> view_ =
      ClusterView::Create(SmallManifest(),
                          {.self = "a", .members = test::Members({"a"})})
          .value();
  const std::vector<LayerPartitionCount> layers_ =
      test::LayersOf(SmallManifest());
  HandOver hand_over_{SmallManifest(), {}};
  int wakes_ = 0;
  ExchangeAnswers answers_{hand_over_, layers_, [this] { ++wakes_; }};
};

TEST_F(ExchangeAnswersTest, RemembersThatOneWhoAskedHasAView) {
  Ask(RequestOf(""));
  EXPECT_FALSE(answers_.peer_has_view());
  Ask(RequestOf("d"));
  Ask(RequestOf(""));
  EXPECT_TRUE(answers_.peer_has_view());
}

TEST_F(ExchangeAnswersTest, SaysWhatIsPublished) {
  v1::ExchangeResponse state;
  state.set_view_digest("d");
  state.add_members()->set_name("b");
  answers_.Publish(state);
  const v1::ExchangeResponse response = Ask({});
  EXPECT_EQ(response.server_name(), "a");  // what the caller has set stays
  EXPECT_EQ(response.view_digest(), "d");
  ASSERT_THAT(response.members(), SizeIs(1));
  EXPECT_EQ(response.members(0).name(), "b");
  state.set_view_digest("e");
  answers_.Publish(state);
  EXPECT_EQ(Ask({}).view_digest(), "e");
  EXPECT_EQ(wakes_, 0);
}

TEST_F(ExchangeAnswersTest, AcknowledgesWhatTheHandOverDoes) {
  const std::vector<PartitionRef> asked(view_->owned().begin(),
                                        view_->owned().begin() + 3);
  EXPECT_THAT(Acknowledged(Ask(RequestOf(view_->digest()), asked)),
              ElementsAreArray(asked));
  EXPECT_THAT(Acknowledged(Ask(RequestOf("other"), asked)), IsEmpty());
  EXPECT_THAT(Acknowledged(Ask(RequestOf(view_->digest()))), IsEmpty());
}

TEST_F(ExchangeAnswersTest, NobodyIsToRelyOnAServerThatEnds) {
  EXPECT_FALSE(Ask({}).draining());
  answers_.AnnounceExit();
  answers_.Publish({});
  const v1::ExchangeResponse response =
      Ask(RequestOf(view_->digest()), view_->owned());
  EXPECT_TRUE(response.draining());
  EXPECT_THAT(Acknowledged(response), IsEmpty());
}

TEST_F(ExchangeAnswersTest, GivesOnTheDeparturesThatAreNews) {
  v1::ExchangeResponse state;
  *state.mutable_departures() = ToDepartureList({{"b", 5}, {"c", 5}});
  answers_.Publish(state);
  Ask(Telling({{"b", 5}, {"c", 4}}));
  EXPECT_EQ(wakes_, 0);
  EXPECT_THAT(answers_.TakeDepartures(), IsEmpty());
  Ask(Telling({{"b", 6}, {"c", 5}, {"d", 1}}));
  EXPECT_EQ(wakes_, 1);
  EXPECT_THAT(answers_.TakeDepartures(),
              ElementsAre(MemberDeparture{"b", 6}, MemberDeparture{"d", 1}));
  EXPECT_THAT(answers_.TakeDepartures(), IsEmpty());
}

TEST_F(ExchangeAnswersTest, DeparturesThatNobodyTakesAreBounded) {
  std::vector<MemberDeparture> many;
  for (size_t i = 0; i < Departures::kMax; ++i) {
    many.push_back({absl::StrCat("t", i), 1});
  }
  for (int i = 0; i < 5; ++i) Ask(Telling(many));
  EXPECT_THAT(answers_.TakeDepartures(), SizeIs(Departures::kMax));
}

TEST_F(ExchangeAnswersTest, Leave) {
  EXPECT_FALSE(answers_.leave_asked());
  EXPECT_THAT(answers_.Leave({}), IsOk());
  EXPECT_EQ(wakes_, 1);
  EXPECT_TRUE(answers_.leave_asked());
}

}  // namespace
}  // namespace engram
