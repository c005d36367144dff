#include "table_server/rebalance/peer_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/rebalance/rebalance_fakes.h"
#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram {
namespace {

using test::IsError;
using test::IsOk;
using test::Names;
using test::SmallManifest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Pace = PeerExchange::Pace;

constexpr absl::Duration kInterval = absl::Seconds(1);
constexpr absl::Duration kBusy = absl::Milliseconds(200);
constexpr absl::Duration kTimeout = absl::Seconds(3);

// Calls that end when the test says so.
class PendingCalls final : public PeerCalls {
 public:
  struct Call {
    std::string address;
    v1::ExchangeRequest request;
    absl::Duration patience;
    ExchangeDone done;
  };

  void Exchange(const std::string& address, const v1::ExchangeRequest& request,
                absl::Time deadline, ExchangeDone done) override {
    calls.push_back(
        {address, request, deadline - absl::Now(), std::move(done)});
  }
  absl::Status FetchPartition(const std::string&, const Fetch&,
                              FetchSink) override {
    return absl::UnimplementedError("no rows here");
  }
  void Retain(absl::Span<const std::string>) override {}

  Call Take() {
    Call call = std::move(calls.front());
    calls.pop_front();
    return call;
  }

  std::deque<Call> calls;
};

class PeerExchangeTest : public ::testing::Test {
 protected:
  // Asks those of `names` that are due. Who was asked.
  Names Send(const Names& names, Pace pace = Pace::kUsual,
             PeerExchange::News news = {}) {
    const std::vector<Member> due =
        exchange_.Due(test::Members(names), pace, now_);
    exchange_.SendTo(due, std::move(news), now_);
    Names asked;
    for (const Member& peer : due) asked.push_back(peer.name);
    return asked;
  }
  void AnswerAll() {
    while (!calls_.calls.empty()) calls_.Take().done(v1::ExchangeResponse());
  }

  absl::Time now_ = absl::UnixEpoch();
  int wakes_ = 0;
  PendingCalls calls_;
  PeerExchange exchange_{calls_,
                         {.server_name = "s",
                          .instance_id = 7,
                          .version = "v",
                          .interval = kInterval,
                          .busy_interval = kBusy,
                          .timeout = kTimeout},
                         test::LayersOf(SmallManifest()),
                         [this] { ++wakes_; }};
};

TEST_F(PeerExchangeTest, AsksEveryPeerOnceAnInterval) {
  EXPECT_THAT(Send({"a", "b"}), ElementsAre("a", "b"));
  AnswerAll();
  EXPECT_THAT(Send({"a", "b"}), IsEmpty());
  now_ += kInterval - absl::Nanoseconds(1);
  EXPECT_THAT(Send({"a", "b"}), IsEmpty());
  EXPECT_THAT(Send({"a", "b", "c"}), ElementsAre("c"));
  AnswerAll();
  now_ += absl::Nanoseconds(1);
  EXPECT_THAT(Send({"a", "b", "c"}), ElementsAre("a", "b"));
}

TEST_F(PeerExchangeTest, MoreOftenWhenItIsBusy) {
  Send({"a"});
  AnswerAll();
  now_ += kBusy;
  EXPECT_THAT(Send({"a"}), IsEmpty());
  EXPECT_THAT(Send({"a"}, Pace::kBusy), ElementsAre("a"));
}

TEST_F(PeerExchangeTest, OneCallToEachAtATime) {
  Send({"a", "b"});
  PendingCalls::Call to_a = calls_.Take();
  AnswerAll();
  now_ += 10 * kInterval;
  EXPECT_THAT(Send({"a", "b"}), ElementsAre("b"));
  to_a.done(absl::UnavailableError("late"));
  EXPECT_THAT(Send({"a", "b"}), ElementsAre("a"));
}

TEST_F(PeerExchangeTest, SaysWhoAsks) {
  PeerExchange::News news;
  news.request.set_view_digest("d");
  news.request.add_departures()->set_server_name("gone");
  Send({"a"}, Pace::kUsual, news);
  const PendingCalls::Call call = calls_.Take();
  EXPECT_EQ(call.address, "a:1");
  EXPECT_GT(call.patience, kTimeout - absl::Seconds(1));
  EXPECT_LE(call.patience, kTimeout);
  EXPECT_EQ(call.request.server_name(), "s");
  EXPECT_EQ(call.request.instance_id(), 7U);
  EXPECT_EQ(call.request.version(), "v");
  EXPECT_EQ(call.request.view_digest(), "d");
  EXPECT_EQ(call.request.departures(0).server_name(), "gone");
  EXPECT_THAT(call.request.to_free(), IsEmpty());
}

TEST_F(PeerExchangeTest, AsksEachAboutItsOwnPartitions) {
  constexpr PartitionRef kOfB{LayerId{14}, PartitionId{6}};
  const std::vector<HandOver::Ask> asks = {
      {.peer = "b", .digest = "d", .epoch = 9, .partitions = {kOfB}}};
  Send({"a", "b"}, Pace::kUsual, {.asks = asks, .request = {}});
  const auto layers = test::LayersOf(SmallManifest());
  PendingCalls::Call to_a = calls_.Take();
  PendingCalls::Call to_b = calls_.Take();
  EXPECT_THAT(to_a.request.to_free(), IsEmpty());
  EXPECT_THAT(FromLayerPartitions(to_b.request.to_free(), layers).value(),
              ElementsAre(kOfB));
  to_b.done(v1::ExchangeResponse());
  to_a.done(v1::ExchangeResponse());
  const auto answers = exchange_.TakeAnswers();
  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_EQ(answers[0].peer, "b");
  EXPECT_EQ(answers[0].epoch, 9U);
  EXPECT_EQ(answers[1].peer, "a");
  EXPECT_EQ(answers[1].epoch, 0U);
}

TEST_F(PeerExchangeTest, AnswersSayWhenTheyWereAskedFor) {
  const absl::Time asked = now_;
  Send({"a"});
  now_ += kInterval;
  EXPECT_EQ(wakes_, 0);
  v1::ExchangeResponse response;
  response.set_server_name("a");
  calls_.Take().done(response);
  EXPECT_EQ(wakes_, 1);
  Send({"a"});
  calls_.Take().done(absl::UnavailableError("gone"));
  EXPECT_EQ(wakes_, 2);
  const auto answers = exchange_.TakeAnswers();
  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_EQ(answers[0].asked, asked);
  ASSERT_THAT(answers[0].response, IsOk());
  EXPECT_EQ(answers[0].response->server_name(), "a");
  EXPECT_EQ(answers[1].asked, now_);
  EXPECT_THAT(answers[1].response,
              IsError(absl::StatusCode::kUnavailable, "gone"));
  EXPECT_THAT(exchange_.TakeAnswers(), IsEmpty());
}

TEST_F(PeerExchangeTest, PeersThatVanishStillAnswer) {
  Send({"a", "b"});
  EXPECT_THAT(Send({"b"}), IsEmpty());
  EXPECT_THAT(Send({"a", "b"}), IsEmpty());  // its call is under way
  EXPECT_THAT(Send({"b"}), IsEmpty());
  AnswerAll();
  EXPECT_THAT(exchange_.TakeAnswers(), SizeIs(2));
  EXPECT_THAT(Send({"b"}), IsEmpty());  // "a" is forgotten
  EXPECT_THAT(Send({"a", "b"}), ElementsAre("a"));
}

}  // namespace
}  // namespace engram
