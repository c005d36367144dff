#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "table_server/membership/member_tracker.h"
#include "tests/unit/table_server/membership/member_tracker_fixture.h"

namespace engram {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using LostMembersTest = MemberTrackerTest;

// Silence

TEST_F(LostMembersTest, TheSilentDieAndReturnWhenTheyAreHeard) {
  Form("t0 t1 t2");
  const auto pass_without_t1 = [&](absl::Duration time) {
    for (absl::Time end = now_ + time; now_ < end;) {
      now_ += kSecond;
      Name("t0 t1 t2");
      Hear("t2");
      tracker_->Update(now_);
    }
  };
  pass_without_t1(kDeath + kWindow - kSecond);
  EXPECT_EQ(View(), "t0 t1 t2");
  pass_without_t1(kSecond);
  EXPECT_EQ(View(), "t0 t2");
  EXPECT_EQ(Peers(), "t1 t2");  // the source still names it
  pass_without_t1(3 * kDeath);
  EXPECT_EQ(View(), "t0 t2");
  EXPECT_EQ(tracker_->waiting_for(), "");
  Hear("t1");
  pass_without_t1(kWindow + kSecond);
  EXPECT_EQ(View(), "t0 t1 t2");
}

TEST_F(LostMembersTest, TheDeadDoNotReturnByFlappingInDns) {
  Start(OptionsOfDns());
  Form("t0 t1");
  for (int i = 0; i < 300; ++i) {
    Name(i % 10 < 5 ? "t0 t1" : "t0");
    After(kSecond);
  }
  EXPECT_EQ(View(), "t0");
}

TEST_F(LostMembersTest, NeverHeardIsSilentSinceTheViewWasFormed) {
  Name("t0 t1");
  After(10 * kDeath);
  EXPECT_EQ(View(), "t0 t1");
  EXPECT_FALSE(After(kDeath - kSecond));
  EXPECT_EQ(tracker_->waiting_for(), "");
  EXPECT_FALSE(After(kSecond));
  EXPECT_TRUE(After(kWindow));
  EXPECT_EQ(View(), "t0");
}

TEST_F(LostMembersTest, NeverHeardIsSilentSinceItJoined) {
  Form("t0");
  After(10 * kDeath);
  Name("t0 t1");
  EXPECT_TRUE(After(kWindow));
  EXPECT_FALSE(After(kDeath - kSecond));
  EXPECT_EQ(tracker_->waiting_for(), "");
  Hear("t1");
  EXPECT_FALSE(After(kDeath - kSecond));
  EXPECT_EQ(tracker_->waiting_for(), "");
}

TEST_F(LostMembersTest, SelfIsNeverSilent) {
  Form("t0");
  EXPECT_FALSE(After(100 * kDeath));
  EXPECT_EQ(View(), "t0");
}

// A process that was stopped for long finds everybody silent at first.
TEST_F(LostMembersTest, NobodyDiesInASleepOfItsOwn) {
  Form("t0 t1 t2");
  EXPECT_FALSE(After(10 * kDeath));
  EXPECT_EQ(View(), "t0 t1 t2");
  now_ += kSecond;
  HearAll();
  EXPECT_FALSE(After(kWindow));
  EXPECT_EQ(tracker_->waiting_for(), "");
}

// Departures

TEST_F(LostMembersTest, TheDepartedAreDroppedAtOnce) {
  Form("t0 t1 t2");
  Hear("t1", 7);
  tracker_->MergeDepartures({{"t1", 7}});
  EXPECT_EQ(View(), "t0 t1 t2");
  EXPECT_TRUE(After(absl::ZeroDuration()));
  EXPECT_EQ(View(), "t0 t2");
  EXPECT_EQ(Peers(), "t1 t2");
  EXPECT_THAT(tracker_->departures(), ElementsAre(MemberDeparture{"t1", 7}));
  // It still serves while it hands over.
  for (int i = 0; i < 100; ++i) {
    Name("t0 t1 t2");
    Hear("t1", 7);
    Hear("t2");
    ASSERT_FALSE(After(kSecond));
  }
}

TEST_F(LostMembersTest, TheDepartedAreDroppedWhileOtherChangesWait) {
  Form("t0 t1 t2");
  Name("t0 t1 t2 t3");
  After(kSecond);
  tracker_->MergeDepartures({{"t1", 1}});
  EXPECT_TRUE(After(absl::ZeroDuration()));
  EXPECT_EQ(View(), "t0 t2");
  EXPECT_TRUE(After(kWindow));
  EXPECT_EQ(View(), "t0 t2 t3");
}

TEST_F(LostMembersTest, ARestartUndoesADeparture) {
  Form("t0 t1");
  Hear("t1", 7);
  tracker_->MergeDepartures({{"t1", 7}});
  EXPECT_TRUE(After(kSecond));
  Hear("t1", 8);
  EXPECT_THAT(tracker_->departures(), IsEmpty());
  EXPECT_FALSE(After(absl::ZeroDuration()));
  // Others have not heard of it yet; an answer was long on its way.
  tracker_->MergeDepartures({{"t1", 7}});
  Hear("t1", 7);
  EXPECT_THAT(tracker_->departures(), IsEmpty());
  EXPECT_TRUE(After(kWindow));
  EXPECT_EQ(View(), "t0 t1");
  tracker_->MergeDepartures({{"t1", 8}});
  EXPECT_TRUE(After(kSecond));
  EXPECT_EQ(View(), "t0");
}

TEST_F(LostMembersTest, ARestartBeforeTheNewsComesIsNoDeparture) {
  Form("t0 t1");
  Hear("t1", 8);
  tracker_->MergeDepartures({{"t1", 7}});
  EXPECT_FALSE(After(2 * kWindow));
  EXPECT_EQ(View(), "t0 t1");
}

TEST_F(LostMembersTest, TheDepartedDoNotCountForTheFirstView) {
  MemberTracker::Options options = OptionsOfList();
  options.expected_servers = 2;
  Start(options);
  Name("t0 t1");
  tracker_->MergeDepartures({{"t1", 7}, {"t5", 7}});
  EXPECT_FALSE(After(2 * kWindow));
  EXPECT_EQ(tracker_->waiting_for(), "1 of 2 expected servers are there: t0");
  EXPECT_THAT(tracker_->departures(),
              ElementsAre(MemberDeparture{"t1", 7}, MemberDeparture{"t5", 7}));
}

TEST_F(LostMembersTest, LeavingIsAtOnceAndForGood) {
  Form("t0 t1");
  tracker_->Leave();
  EXPECT_TRUE(After(absl::ZeroDuration()));
  EXPECT_EQ(View(), "t1");
  EXPECT_THAT(tracker_->departures(),
              ElementsAre(MemberDeparture{"t0", kSelfInstance}));
  Pass(2 * kDeath, "t0 t1");
  EXPECT_EQ(View(), "t1");
  EXPECT_EQ(Peers(), "t1");
}

TEST_F(LostMembersTest, LeavingDoesNotWaitForOtherChanges) {
  Form("t0 t1");
  Name("t0 t1 t2");
  tracker_->Leave();
  EXPECT_TRUE(After(kSecond));
  EXPECT_EQ(View(), "t1");
}

TEST_F(LostMembersTest, EverybodyMayLeave) {
  Form("t0 t1");
  tracker_->Leave();
  tracker_->MergeDepartures({{"t1", 1}});
  EXPECT_TRUE(After(kSecond));
  EXPECT_THAT(tracker_->view(), IsEmpty());
  EXPECT_TRUE(tracker_->has_view());
  EXPECT_EQ(tracker_->waiting_for(), "");
}

TEST_F(LostMembersTest, DeparturesOfEarlierInstancesOfSelfAreOver) {
  Form("t0 t1");
  tracker_->MergeDepartures({{"t0", kSelfInstance - 1}});
  EXPECT_FALSE(After(kSecond));
  EXPECT_THAT(tracker_->departures(), IsEmpty());
  tracker_->MergeDepartures({{"t0", kSelfInstance}});  // "drain t0" elsewhere
  EXPECT_TRUE(After(kSecond));
  EXPECT_EQ(View(), "t1");
}

TEST_F(LostMembersTest, DeparturesAreBounded) {
  Form("t0 t1");
  std::vector<MemberDeparture> many;
  for (uint64_t i = 0; i < 2 * MemberTracker::kMaxDepartures; ++i) {
    many.push_back({absl::StrCat("s", i), i + 1});
  }
  tracker_->MergeDepartures(many);
  EXPECT_EQ(tracker_->departures().size(), MemberTracker::kMaxDepartures);
}

// Peers

TEST_F(LostMembersTest, FormerMembersStayPeersWhileTheyAreHeard) {
  Form("t0 t1 t2");
  for (int i = 0; i < 300; ++i) {
    Name("t0 t2");
    Hear("t1");
    Hear("t2");
    After(kSecond);
  }
  EXPECT_EQ(View(), "t0 t2");
  EXPECT_EQ(Peers(), "t1 t2");
  After(kDeath);
  EXPECT_EQ(Peers(), "t2");
}

TEST_F(LostMembersTest, NewServersArePeersBeforeTheyAreMembers) {
  Form("t0");
  Name("t0 t1");
  EXPECT_EQ(Peers(), "t1");
}

TEST_F(LostMembersTest, WhatIsRememberedIsBounded) {
  Start(OptionsOfDns());
  Form("t0");
  std::vector<Member> members;
  for (int round = 0; round < 10; ++round) {
    members = Members("t0");
    for (size_t i = 1; i < kMaxMembers; ++i) {
      members.push_back({absl::StrCat("u", round, ".", i), "u:0"});
    }
    tracker_->Observe(*MakeMemberList(members), now_);
    HearAll();
    After(kWindow);
  }
  EXPECT_LE(tracker_->view().size(), kMaxMembers);
  EXPECT_LE(tracker_->Peers().size(), 3 * kMaxMembers);
  EXPECT_THAT(tracker_->waiting_for(), HasSubstr("the limit is 4096"));
}

}  // namespace
}  // namespace engram
