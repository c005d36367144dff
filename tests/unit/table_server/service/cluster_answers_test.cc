#include "table_server/service/cluster_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "core/wire/layer_partitions.h"
#include "table_server/membership/member_tracker.h"
#include "table_server/service/fake_cluster_calls.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/service/service_fixture.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class ClusterAnswersTest : public test::ServiceFixture {
 protected:
  ClusterAnswersTest() { cluster_ = &calls_; }

  absl::Status Exchange(const v1::ExchangeRequest& request,
                        v1::ExchangeResponse& response) {
    grpc::ClientContext context;
    SetDeadline(context);
    return FromGrpcStatus(stub_->Exchange(&context, request, &response));
  }
  absl::Status Exchange(const v1::ExchangeRequest& request) {
    v1::ExchangeResponse response;
    return Exchange(request, response);
  }
  absl::Status Leave(const std::string& name) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::LeaveRequest request;
    request.set_server_name(name);
    v1::LeaveResponse response;
    return FromGrpcStatus(stub_->Leave(&context, request, &response));
  }
  // From server "s2", which wants to free partitions 1 and 4 of layer 0.
  v1::ExchangeRequest FromPeer() const {
    v1::ExchangeRequest request;
    request.set_version(manifest_.version());
    request.set_server_name("s2");
    request.set_view_digest("abc");
    *request.mutable_to_free() = ToLayerPartitions(
        {{layer(0), PartitionId{1}}, {layer(0), PartitionId{4}}},
        {{layer(0), manifest_.partition_count(0)}});
    return request;
  }

  FakeClusterCalls calls_;
};

TEST_F(ClusterAnswersTest, TellsWhoItIsAndWhatItHolds) {
  cluster_ = nullptr;
  Start();
  partitions_.Withdraw(1, PartitionId{0});
  v1::ExchangeResponse response;
  ASSERT_THAT(Exchange({}, response), IsOk());
  EXPECT_EQ(response.version(), manifest_.version());
  EXPECT_EQ(response.server_name(), "s1");
  EXPECT_EQ(response.instance_id(), 99U);
  EXPECT_FALSE(response.ready());
  EXPECT_FALSE(response.draining());
  ASSERT_EQ(response.held_size(), 2);
  EXPECT_EQ(response.held(0).layer_id(), 1U);
  EXPECT_EQ(response.held(0).partition_count(), manifest_.partition_count(0));
  EXPECT_EQ(response.held(0).bitmap()[0], '\xFF');
  EXPECT_EQ(response.held(1).bitmap()[0], '\xFE');  // as it is announced
  EXPECT_EQ(response.acknowledged_size(), 0);

  service_->SetReady(true);
  ASSERT_THAT(Exchange({}, response), IsOk());
  EXPECT_TRUE(response.ready());
}

TEST_F(ClusterAnswersTest, AnswersWhileItDrains) {
  Start();
  partitions_.AnnounceDraining();
  service_->StopAccepting();
  v1::ExchangeResponse response;
  ASSERT_THAT(Exchange({}, response), IsOk());
  EXPECT_TRUE(response.draining());
  EXPECT_THAT(Leave("s1"), IsOk());
}

TEST_F(ClusterAnswersTest, TheClusterSaysTheRest) {
  Start();
  v1::ExchangeResponse response;
  ASSERT_THAT(Exchange(FromPeer(), response), IsOk());
  EXPECT_EQ(response.server_name(), "s1");
  EXPECT_EQ(response.view_digest(), "abc");
  ASSERT_EQ(response.acknowledged_size(), 1);
  EXPECT_EQ(response.acknowledged(0).bitmap()[0], '\x12');
  EXPECT_THAT(calls_.asked(),
              ElementsAre(PartitionRef{layer(0), PartitionId{1}},
                          PartitionRef{layer(0), PartitionId{4}}));
  calls_.Answer(absl::InternalError("no luck"));
  EXPECT_THAT(Exchange(FromPeer()),
              IsError(absl::StatusCode::kInternal, HasSubstr("no luck")));
}

TEST_F(ClusterAnswersTest, RefusesWhatIsNotOfThisTable) {
  Start();
  v1::ExchangeRequest request = FromPeer();
  request.set_version("other");
  EXPECT_EQ(ReasonOf(Exchange(request)), ErrorReason::kWrongTable);
  request = FromPeer();
  request.mutable_to_free(0)->set_partition_count(7);
  EXPECT_THAT(Exchange(request), IsError(kInvalid, HasSubstr("7 partitions")));
  request = FromPeer();
  request.mutable_to_free(0)->set_layer_id(3);
  EXPECT_THAT(Exchange(request), IsError(kInvalid, HasSubstr("layer 3")));
  EXPECT_THAT(calls_.asked(), ElementsAre());
}

TEST_F(ClusterAnswersTest, RefusesNamesAndNumbersBeyondTheLimits) {
  Start();
  v1::ExchangeRequest request = FromPeer();
  request.clear_server_name();
  EXPECT_THAT(Exchange(request),
              IsError(kInvalid, HasSubstr("without a server name")));
  request.set_server_name("a b");
  EXPECT_THAT(Exchange(request), IsError(kInvalid, HasSubstr("\"a b\"")));
  request.set_server_name(std::string(100000, 'a'));
  EXPECT_THAT(Exchange(request), IsError(kInvalid, HasSubstr("253")));
  request = FromPeer();
  request.set_view_digest(std::string(65, 'a'));
  EXPECT_THAT(Exchange(request), IsError(kInvalid, HasSubstr("64")));
  request = FromPeer();
  request.add_departures()->set_server_name("t/1");
  EXPECT_THAT(Exchange(request), IsError(kInvalid, HasSubstr("\"t/1\"")));
  request = FromPeer();
  for (size_t i = 0; i <= MemberTracker::kMaxDepartures; ++i) {
    request.add_departures()->set_server_name("t1");
  }
  EXPECT_THAT(Exchange(request), IsError(kInvalid, HasSubstr("4096")));
  request.mutable_departures()->RemoveLast();
  EXPECT_THAT(Exchange(request), IsOk());
}

TEST_F(ClusterAnswersTest, LeavesOnlyByItsOwnName) {
  Start();
  EXPECT_THAT(Leave("s2"),
              IsError(absl::StatusCode::kNotFound, HasSubstr("s1")));
  EXPECT_THAT(Leave(""), IsError(kInvalid, _));
  EXPECT_EQ(calls_.left(), "");
  EXPECT_THAT(Leave("s1"), IsOk());
  EXPECT_EQ(calls_.left(), "s1");
}

TEST_F(ClusterAnswersTest, AServerInNoClusterCannotLeave) {
  cluster_ = nullptr;
  Start();
  EXPECT_THAT(Leave("s1"), IsError(absl::StatusCode::kUnimplemented, _));
}

TEST_F(ClusterAnswersTest, CallsAreCounted) {
  Start();
  ASSERT_THAT(Exchange({}), IsOk());
  EXPECT_FALSE(Leave("s2").ok());
  server_->Shutdown(absl::Now() + absl::Seconds(20));
  const std::string text =
      prometheus::TextSerializer().Serialize(registry_->Collect());
  EXPECT_THAT(text, HasSubstr("engram_table_calls_total{code=\"OK\",method="
                              "\"Exchange\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("engram_table_calls_total{code=\"NOT_FOUND\","
                              "method=\"Leave\"} 1\n"));
}

}  // namespace
}  // namespace engram
