#include "table_server/membership/member_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/unit/table_server/membership/member_tracker_fixture.h"

namespace engram {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The first view

TEST_F(MemberTrackerTest, FirstViewIsAStableAnswer) {
  EXPECT_FALSE(After(kWindow));
  EXPECT_FALSE(tracker_->has_view());
  EXPECT_THAT(tracker_->waiting_for(), HasSubstr("no servers"));
  Name("t0 t1");
  EXPECT_FALSE(After(kWindow - kSecond));
  EXPECT_THAT(tracker_->waiting_for(),
              AllOf(HasSubstr("stay the same for 5s"), HasSubstr("t0, t1")));
  EXPECT_TRUE(After(kSecond));
  EXPECT_TRUE(tracker_->has_view());
  EXPECT_EQ(View(), "t0 t1");
  EXPECT_EQ(tracker_->waiting_for(), "");
  EXPECT_FALSE(After(kSecond));
}

TEST_F(MemberTrackerTest, FirstViewAtOnceWithoutAWindow) {
  MemberTracker::Options options = OptionsOfList();
  options.stability_window = absl::ZeroDuration();
  Start(options);
  Name("t0");
  EXPECT_TRUE(After(absl::ZeroDuration()));
  EXPECT_EQ(View(), "t0");
}

TEST_F(MemberTrackerTest, FirstViewWaitsForExpectedServersInAnyOrder) {
  MemberTracker::Options options = OptionsOfDns();
  options.expected_servers = 3;
  Start(options);
  for (const char* names : {"t2", "t0 t2", "t2", "t0 t2"}) {
    Pass(2 * kWindow, names);
    EXPECT_FALSE(tracker_->has_view());
  }
  EXPECT_EQ(tracker_->waiting_for(),
            "2 of 3 expected servers are there: t0, t2");
  Pass(kWindow, "t0 t1 t2");
  EXPECT_FALSE(tracker_->has_view());
  Pass(kSecond, "t0 t1 t2");
  EXPECT_EQ(View(), "t0 t1 t2");
}

TEST_F(MemberTrackerTest, MoreServersThanExpectedCount) {
  MemberTracker::Options options = OptionsOfList();
  options.expected_servers = 2;
  Start(options);
  Form("t0 t1 t2");
}

TEST_F(MemberTrackerTest, APeersViewMeansThatTheClusterHasBeenFormed) {
  MemberTracker::Options options = OptionsOfList();
  options.expected_servers = 5;
  Start(options);
  Name("t0 t1 t2");
  After(kWindow);
  tracker_->HeardFrom("t1", 1, /*has_view=*/false, now_);
  tracker_->HeardFrom("t0", kSelfInstance, /*has_view=*/true, now_);
  tracker_->HeardFrom("stranger", 1, /*has_view=*/true, now_);
  EXPECT_FALSE(After(kSecond));
  EXPECT_THAT(tracker_->waiting_for(), HasSubstr("3 of 5"));
  tracker_->HeardFrom("t2", 1, /*has_view=*/true, now_);
  Name("t0 t1 t2");  // may have been asked for before
  EXPECT_FALSE(After(absl::ZeroDuration()));
  Name("t0 t1 t2");
  EXPECT_TRUE(After(absl::ZeroDuration()));  // they have been stable
  EXPECT_EQ(View(), "t0 t1 t2");
}

// The source names only this server yet, so that it asks nobody.
TEST_F(MemberTrackerTest, WhoAsksWithAViewMeansThatTheClusterHasBeenFormed) {
  MemberTracker::Options options = OptionsOfList();
  options.expected_servers = 5;
  Start(options);
  Name("t0");
  EXPECT_FALSE(After(kWindow));
  tracker_->ClusterIsFormed();
  Name("t0");
  tracker_->ClusterIsFormed();  // it is told time and again
  EXPECT_FALSE(After(absl::ZeroDuration()));
  Name("t0");
  EXPECT_TRUE(After(absl::ZeroDuration()));
  EXPECT_EQ(View(), "t0");
}

// It is the last of those expected that made the peer's view.
TEST_F(MemberTrackerTest, AViewThatHasJustBeenFormedIsNotFormedWithoutItsLast) {
  MemberTracker::Options options = OptionsOfList();
  options.expected_servers = 3;
  Start(options);
  Name("t0 t1");
  EXPECT_FALSE(After(kWindow));
  tracker_->HeardFrom("t1", 1, /*has_view=*/true, now_);
  EXPECT_FALSE(After(absl::ZeroDuration()));
  Name("t0 t1 t2");
  EXPECT_FALSE(After(absl::ZeroDuration()));
  EXPECT_TRUE(After(kWindow));
  EXPECT_EQ(View(), "t0 t1 t2");
}

TEST_F(MemberTrackerTest, APeersViewDoesNotReplaceStability) {
  Name("t0 t1");
  tracker_->HeardFrom("t1", 1, /*has_view=*/true, now_);
  EXPECT_FALSE(After(kWindow - kSecond));
  Name("t0 t1 t2");
  EXPECT_FALSE(After(kSecond));
  EXPECT_TRUE(After(kWindow - kSecond));
  EXPECT_EQ(View(), "t0 t1 t2");
}

TEST_F(MemberTrackerTest, SaysWhyTheSourceDoesNotAnswer) {
  Fail();
  EXPECT_THAT(tracker_->waiting_for(), HasSubstr("SERVFAIL"));
}

TEST_F(MemberTrackerTest, SelfNeedNotBeNamed) {
  Form("t1 t2");
  EXPECT_EQ(Peers(), "t1 t2");
}

// Changes

TEST_F(MemberTrackerTest, AStableChangeBecomesTheView) {
  Form("t0 t1");
  Name("t0 t1 t2 t3");
  EXPECT_FALSE(After(kWindow - kSecond));
  EXPECT_EQ(View(), "t0 t1");
  EXPECT_THAT(tracker_->waiting_for(), HasSubstr("t0, t1, t2, t3"));
  EXPECT_TRUE(After(kSecond));
  EXPECT_EQ(View(), "t0 t1 t2 t3");
  Name("t1 t3");
  EXPECT_TRUE(After(kWindow));
  EXPECT_EQ(View(), "t1 t3");
}

TEST_F(MemberTrackerTest, FlappingChangesNothing) {
  Form("t0 t1 t2");
  for (int i = 0; i < 50; ++i) {
    Pass(kWindow - kSecond, "t0 t1");
    Pass(kSecond, "t0 t1 t2");
    ASSERT_EQ(View(), "t0 t1 t2");
  }
  for (int i = 0; i < 50; ++i) {
    Pass(kWindow - kSecond, "t0 t1 t2 t3");
    Pass(kWindow - kSecond, "t0 t1 t2 t4");
    ASSERT_EQ(View(), "t0 t1 t2");
  }
  EXPECT_EQ(tracker_->waiting_for().empty(), false);
  Pass(kSecond, "t0 t1 t2");
  EXPECT_EQ(tracker_->waiting_for(), "");
}

TEST_F(MemberTrackerTest, FlappingBetweenTwoUpdatesIsSeen) {
  Form("t0 t1");
  Name("t0 t1 t2");
  now_ += kWindow - kSecond;
  Name("t0 t1");
  Name("t0 t1 t2");
  EXPECT_FALSE(After(kSecond));
  EXPECT_TRUE(After(kWindow - kSecond));
}

TEST_F(MemberTrackerTest, SeveralChangesInFlightEndInTheLast) {
  Form("t0 t1");
  for (const char* names : {"t0 t1 t2", "t0 t1 t2 t3", "t0 t2 t3", "t0 t3"}) {
    Pass(3 * kSecond, names);
    EXPECT_EQ(View(), "t0 t1");
  }
  Pass(kWindow, "t0 t3");
  EXPECT_EQ(View(), "t0 t3");
}

TEST_F(MemberTrackerTest, FailedAndEmptyAnswersChangeNothing) {
  for (const auto& options : {OptionsOfList(), OptionsOfDns()}) {
    Start(options);
    Form("t0 t1 t2");
    for (int i = 0; i < 600; ++i) {
      i % 2 == 0 ? Fail() : Name("");
      HearAll();
      ASSERT_FALSE(After(kSecond));
    }
    EXPECT_EQ(View(), "t0 t1 t2");
    EXPECT_EQ(Peers(), "t1 t2");
  }
}

TEST_F(MemberTrackerTest, FailedAnswersDoNotInterruptAChange) {
  Form("t0 t1");
  Name("t0 t1 t2");
  for (int i = 1; i < 5; ++i) {
    Fail();
    EXPECT_FALSE(After(kSecond));
  }
  EXPECT_TRUE(After(kSecond));
  EXPECT_EQ(View(), "t0 t1 t2");
}

TEST_F(MemberTrackerTest, AddressesChangeWithoutAChangeOfTheView) {
  Form("t0 t1");
  std::vector<Member> moved = Members("t0 t1");
  moved[1].address = "elsewhere:2";
  tracker_->Observe(moved, now_);
  EXPECT_EQ(tracker_->view(), moved);
  EXPECT_THAT(tracker_->Peers(), ElementsAre(moved[1]));
  EXPECT_FALSE(After(2 * kWindow));
  EXPECT_EQ(tracker_->waiting_for(), "");
}

TEST_F(MemberTrackerTest, AddressesChangeWhileAChangeIsWaitedFor) {
  Form("t0 t1");
  std::vector<Member> members = Members("t0 t1 t2");
  tracker_->Observe(members, now_);
  now_ += kWindow - kSecond;
  members[2].address = "elsewhere:2";
  tracker_->Observe(members, now_);
  EXPECT_TRUE(After(kSecond));
  EXPECT_EQ(tracker_->view(), members);
}

TEST_F(MemberTrackerTest, CapacityIsOfTheView) {
  Form("t0 t1");
  std::vector<Member> members = Members("t0 t1");
  members[1].capacity = 2;
  tracker_->Observe(members, now_);
  EXPECT_EQ(tracker_->view()[1].capacity, 1);
  EXPECT_TRUE(After(kWindow));
  EXPECT_EQ(tracker_->view(), members);
}

// Absence, where it is no departure

TEST_F(MemberTrackerTest, AbsentFromDnsCountsOnUntilItIsDead) {
  Start(OptionsOfDns());
  Form("t0 t1 t2");
  Pass(kDeath, "t0 t2");
  EXPECT_EQ(View(), "t0 t1 t2");
  EXPECT_EQ(Peers(), "t1 t2");
  Pass(kWindow + kSecond, "t0 t2");
  EXPECT_EQ(View(), "t0 t2");
}

TEST_F(MemberTrackerTest, ARestartedServerIsNeverAbsentForLong) {
  Start(OptionsOfDns());
  Form("t0 t1 t2");
  for (int i = 0; i < 10; ++i) {
    Pass(kDeath - kSecond, "t0 t2");
    Pass(kSecond, "t0 t1 t2");
  }
  EXPECT_EQ(View(), "t0 t1 t2");
  EXPECT_EQ(tracker_->waiting_for(), "");
}

TEST_F(MemberTrackerTest, NobodyGrowsMoreAbsentWhileDnsFails) {
  Start(OptionsOfDns());
  Form("t0 t1 t2");
  Pass(2 * kSecond, "t0 t2");  // half an answer, then none
  for (int i = 0; i < 600; ++i) {
    i % 2 == 0 ? Fail() : Name("");
    HearAll();
    ASSERT_FALSE(After(kSecond));
  }
  Pass(kSecond, "t0 t1 t2");
  EXPECT_EQ(tracker_->waiting_for(), "");
}

TEST_F(MemberTrackerTest, NewServersJoinWhileOthersAreAbsent) {
  Start(OptionsOfDns());
  Form("t0 t1 t2");
  Pass(kWindow + kSecond, "t0 t3");
  EXPECT_EQ(View(), "t0 t1 t2 t3");
}

TEST_F(MemberTrackerTest, AbsenceFromAListIsDeparture) {
  Form("t0 t1 t2");
  Pass(kWindow + kSecond, "t1 t2");
  EXPECT_EQ(View(), "t1 t2");
}

TEST_F(MemberTrackerTest, ServersThatNeverCountedAreNotMissed) {
  Start(OptionsOfDns());
  Form("t0 t1");
  Pass(kWindow - kSecond, "t0 t1 t2");
  Pass(2 * kWindow, "t0 t1");
  EXPECT_EQ(View(), "t0 t1");
}

}  // namespace
}  // namespace engram
