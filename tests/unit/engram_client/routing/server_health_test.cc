#include "engram_client/routing/server_health.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace engram {
namespace {

using Reason = ServerHealth::Reason;
using Standing = ServerHealth::Standing;

class ServerHealthTest : public ::testing::Test {
 protected:
  std::optional<Reason> End(ServerIndex server, CallOutcome outcome,
                            int times = 1, double slowness = 1) {
    std::optional<Reason> reason;
    for (int i = 0; i < times && !reason.has_value(); ++i) {
      reason = health_.CallEnded(server, outcome, slowness, now_);
    }
    return reason;
  }
  // How many calls it takes.
  int CallsUntilOut(ServerIndex server, CallOutcome outcome, double slowness) {
    for (int calls = 1; calls < 1000; ++calls) {
      if (End(server, outcome, 1, slowness).has_value()) return calls;
    }
    return 1000;
  }
  Standing StandingOf(ServerIndex server, uint32_t turn = 0) const {
    return health_.StandingOf(server, turn, now_);
  }
  // Of 16 gathers, how many may use it.
  int Share(ServerIndex server) const {
    int usable = 0;
    for (uint32_t turn = 0; turn < 16; ++turn) {
      usable += StandingOf(server, turn) == Standing::kUsable ? 1 : 0;
    }
    return usable;
  }
  void EjectAndWait(ServerIndex server) {
    ASSERT_EQ(End(server, CallOutcome::kFailed, 100), Reason::kErrors);
    now_ += options_.longest_ejection;
    ASSERT_EQ(StandingOf(server), Standing::kProbe);
  }

  const ServerHealth::Options options_{};
  absl::Time now_ = absl::FromUnixSeconds(1000);
  ServerHealth health_{4, options_};
};

TEST_F(ServerHealthTest, AllAreWellAtFirst) {
  EXPECT_TRUE(health_.all_well());
  for (ServerIndex s = 0; s < 4; ++s) {
    EXPECT_EQ(StandingOf(s), Standing::kUsable);
    EXPECT_TRUE(health_.IsWell(s));
    EXPECT_FALSE(health_.IsOut(s, now_));
  }
}

TEST_F(ServerHealthTest, ErrorsPutAServerOut) {
  EXPECT_EQ(End(1, CallOutcome::kFailed, 19), std::nullopt);
  EXPECT_EQ(End(1, CallOutcome::kFailed), Reason::kErrors);
  EXPECT_FALSE(health_.all_well());
  EXPECT_EQ(health_.unwell(), 1u);
  EXPECT_TRUE(health_.IsOut(1, now_));
  EXPECT_EQ(StandingOf(1), Standing::kShunned);
  EXPECT_EQ(StandingOf(0), Standing::kUsable);
  // What comes late changes nothing.
  EXPECT_EQ(End(1, CallOutcome::kFailed, 100), std::nullopt);
}

TEST_F(ServerHealthTest, AFewErrorsAmongManyCallsDoNot) {
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(End(1, CallOutcome::kAnswered, 8), std::nullopt);
    EXPECT_EQ(End(1, CallOutcome::kFailed, 2), std::nullopt);
  }
  EXPECT_EQ(End(1, CallOutcome::kFailed, 200), Reason::kErrors);
}

// As under too much load, or when the client itself gets no time to run.
TEST_F(ServerHealthTest, WhereAllAreBadNoneIs) {
  for (int i = 0; i < 100; ++i) {
    for (ServerIndex s = 0; s < 4; ++s) {
      EXPECT_EQ(End(s, CallOutcome::kTimedOut), std::nullopt);
      EXPECT_EQ(End(s, CallOutcome::kAnswered), std::nullopt);
    }
  }
  EXPECT_EQ(End(1, CallOutcome::kTimedOut, 400), Reason::kErrors);
}

TEST_F(ServerHealthTest, OfAServerThatWasWellTheLastCallsCount) {
  EXPECT_EQ(End(1, CallOutcome::kAnswered, 100000), std::nullopt);
  EXPECT_LE(CallsUntilOut(1, CallOutcome::kBeaten, 1), 12);
}

TEST_F(ServerHealthTest, ItIsSuspectedBefore) {
  EXPECT_EQ(End(1, CallOutcome::kAnswered, 1000), std::nullopt);
  EXPECT_EQ(End(1, CallOutcome::kBeaten, 3), std::nullopt);
  EXPECT_EQ(health_.DoubtOf(1, now_), ServerHealth::Doubt::kNone);
  EXPECT_EQ(End(1, CallOutcome::kBeaten), std::nullopt);
  EXPECT_EQ(health_.DoubtOf(1, now_), ServerHealth::Doubt::kSuspect);
  EXPECT_EQ(health_.DoubtOf(0, now_), ServerHealth::Doubt::kNone);
  EXPECT_EQ(End(1, CallOutcome::kBeaten, 100), Reason::kErrors);
  EXPECT_EQ(health_.DoubtOf(1, now_), ServerHealth::Doubt::kOut);
}

TEST_F(ServerHealthTest, CallsThatWereBeatenOrTimedOutCountAsErrors) {
  EXPECT_EQ(End(0, CallOutcome::kAnswered, 20), std::nullopt);
  EXPECT_EQ(End(1, CallOutcome::kBeaten, 20), Reason::kErrors);
  EXPECT_EQ(End(2, CallOutcome::kTimedOut, 20), Reason::kErrors);
}

TEST_F(ServerHealthTest, SoDoThoseThatAreOverdue) {
  EXPECT_EQ(End(3, CallOutcome::kOverdue, 20), Reason::kErrors);
}

TEST_F(ServerHealthTest, RefusalsAndCancelsSayNothing) {
  EXPECT_EQ(End(1, CallOutcome::kRefused, 1000), std::nullopt);
  EXPECT_EQ(End(1, CallOutcome::kCancelled, 1000, 100), std::nullopt);
}

TEST_F(ServerHealthTest, ACorruptReplyCountsAsManyErrors) {
  EXPECT_EQ(End(1, CallOutcome::kCorrupt), std::nullopt);
  EXPECT_EQ(End(1, CallOutcome::kCorrupt), Reason::kErrors);
}

TEST_F(ServerHealthTest, ASlowServerGoesOut) {
  EXPECT_EQ(End(0, CallOutcome::kAnswered, 100, 1), std::nullopt);
  const int calls = CallsUntilOut(1, CallOutcome::kAnswered, 100);
  EXPECT_EQ(calls, static_cast<int>(options_.min_calls));
  EXPECT_TRUE(health_.IsOut(1, now_));
}

TEST_F(ServerHealthTest, OneSlowCallInTenDoesNot) {
  EXPECT_EQ(End(0, CallOutcome::kAnswered, 100, 1), std::nullopt);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(End(1, CallOutcome::kAnswered, 9, 1), std::nullopt);
    EXPECT_EQ(End(1, CallOutcome::kAnswered, 1, 100), std::nullopt);
  }
}

TEST_F(ServerHealthTest, WhereAllAreSlowNoneIs) {
  for (int i = 0; i < 100; ++i) {
    for (ServerIndex s = 0; s < 4; ++s) {
      EXPECT_EQ(End(s, CallOutcome::kAnswered, 1, 50), std::nullopt);
    }
  }
}

// The usual time is then the slow server's.
TEST_F(ServerHealthTest, OthersThatAreFastMakeAServerSlow) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(End(0, CallOutcome::kAnswered, 10, 0.01), std::nullopt);
  }
  EXPECT_LE(CallsUntilOut(1, CallOutcome::kAnswered, 1), 32);
}

TEST_F(ServerHealthTest, AloneNoneIsSlow) {
  EXPECT_EQ(End(1, CallOutcome::kAnswered, 1000, 100), std::nullopt);
}

TEST_F(ServerHealthTest, NoMoreThanAShareIsOut) {
  EXPECT_EQ(End(0, CallOutcome::kFailed, 100), Reason::kErrors);
  EXPECT_EQ(End(1, CallOutcome::kFailed, 100), Reason::kErrors);
  EXPECT_EQ(End(2, CallOutcome::kFailed, 100), std::nullopt);
  EXPECT_EQ(health_.unwell(), 2u);
  EXPECT_EQ(StandingOf(2), Standing::kUsable);
}

TEST_F(ServerHealthTest, TheShareIsOfTheServersThatAreThere) {
  for (const ServerIndex gone : {1, 2, 3}) health_.SetAnnounced(gone, false);
  EXPECT_EQ(End(0, CallOutcome::kFailed, 100), std::nullopt);
  health_.SetAnnounced(1, true);
  EXPECT_EQ(End(0, CallOutcome::kFailed), Reason::kErrors);
  EXPECT_EQ(End(1, CallOutcome::kFailed, 100), std::nullopt);
  // One that is gone takes nobody's place.
  health_.SetAnnounced(0, false);
  health_.SetAnnounced(2, true);
  EXPECT_EQ(End(1, CallOutcome::kFailed), Reason::kErrors);
}

TEST_F(ServerHealthTest, ProbesThenAGrowingShareThenAll) {
  EjectAndWait(1);
  EXPECT_FALSE(health_.IsOut(1, now_));
  EXPECT_FALSE(health_.IsWell(1));
  EXPECT_EQ(End(1, CallOutcome::kAnswered, 3), std::nullopt);
  for (const int share : {1, 2, 4, 8}) {
    EXPECT_EQ(Share(1), share);
    EXPECT_EQ(End(1, CallOutcome::kAnswered, 7), std::nullopt);
    EXPECT_EQ(Share(1), share);
    EXPECT_FALSE(health_.all_well());
    EXPECT_EQ(End(1, CallOutcome::kAnswered), std::nullopt);
  }
  EXPECT_TRUE(health_.all_well());
  EXPECT_TRUE(health_.IsWell(1));
  EXPECT_EQ(Share(1), 16);
}

TEST_F(ServerHealthTest, ABadProbePutsItOutAtOnceAndForLonger) {
  absl::Duration want = options_.first_ejection;
  EXPECT_EQ(End(1, CallOutcome::kFailed, 100), Reason::kErrors);
  for (int round = 0; round < 10; ++round) {
    now_ += want - absl::Milliseconds(1);
    EXPECT_EQ(StandingOf(1), Standing::kShunned);
    now_ += absl::Milliseconds(1);
    EXPECT_EQ(StandingOf(1), Standing::kProbe);
    EXPECT_EQ(End(1, CallOutcome::kBeaten), Reason::kErrors);
    want = std::min(2 * want, options_.longest_ejection);
  }
  EXPECT_EQ(want, options_.longest_ejection);
  EXPECT_EQ(health_.unwell(), 1u);
}

TEST_F(ServerHealthTest, ASlowProbeIsABadOne) {
  EXPECT_EQ(End(0, CallOutcome::kAnswered, 100, 1), std::nullopt);
  EjectAndWait(1);
  EXPECT_EQ(End(1, CallOutcome::kAnswered, 1, 100), Reason::kLatency);
  EXPECT_TRUE(health_.IsOut(1, now_));
}

TEST_F(ServerHealthTest, WithAShareAgainAFewBadCallsPutItOut) {
  EjectAndWait(1);
  EXPECT_EQ(End(1, CallOutcome::kAnswered, 3), std::nullopt);
  EXPECT_EQ(End(1, CallOutcome::kFailed), std::nullopt);  // 1 of 4
  EXPECT_EQ(End(1, CallOutcome::kFailed), Reason::kErrors);
}

TEST_F(ServerHealthTest, OnceWellForLongItStartsAnew) {
  for (int i = 0; i < 3; ++i) EjectAndWait(1);  // each time from a probe
  EXPECT_EQ(End(1, CallOutcome::kAnswered, 3 + 4 * 8), std::nullopt);
  ASSERT_TRUE(health_.all_well());
  now_ += options_.longest_ejection + absl::Seconds(1);
  EXPECT_EQ(End(1, CallOutcome::kFailed, 100), Reason::kErrors);
  now_ += options_.first_ejection;
  EXPECT_EQ(StandingOf(1), Standing::kProbe);
}

TEST_F(ServerHealthTest, TheNextServerOfASlotIsWell) {
  ASSERT_EQ(End(1, CallOutcome::kFailed, 100), Reason::kErrors);
  health_.Remove(1);
  EXPECT_TRUE(health_.all_well());
  health_.Add(1, /*generation=*/2);
  EXPECT_TRUE(health_.IsWell(1));
  EXPECT_EQ(StandingOf(1), Standing::kUsable);
  // Calls to the one before: nothing, however many there are.
  EXPECT_EQ(End(1, CallOutcome::kFailed, 100), std::nullopt);
  EXPECT_EQ(health_.DoubtOf(1, now_), ServerHealth::Doubt::kNone);
  // Its own count, from the first.
  const auto fail = [&] {
    return health_.CallEnded(1, CallOutcome::kFailed, 1, now_, 2);
  };
  for (int i = 0; i < 19; ++i) EXPECT_EQ(fail(), std::nullopt);
  EXPECT_EQ(fail(), Reason::kErrors);
}

TEST_F(ServerHealthTest, ServersThatAreGoneAreComparedWithNobody) {
  for (ServerIndex s = 0; s < 3; ++s) End(s, CallOutcome::kFailed, 10);
  for (ServerIndex s = 0; s < 3; ++s) health_.Remove(s);
  // As bad as those were: it is the only one now, and they excuse nothing. One
  // that is alone is never put out.
  EXPECT_EQ(End(3, CallOutcome::kFailed, 100), std::nullopt);
  health_.Add(2, 1);
  EXPECT_EQ(End(3, CallOutcome::kFailed), Reason::kErrors);
}

TEST_F(ServerHealthTest, ServersMayComeUpToTheLimit) {
  ServerHealth health(0, {.max_servers = 3});
  health.Add(2, 7);
  health.Add(0, 8);
  const auto fail = [&](uint64_t generation) {
    return health.CallEnded(2, CallOutcome::kFailed, 1, now_, generation);
  };
  for (int i = 0; i < 19; ++i) EXPECT_EQ(fail(7), std::nullopt);
  EXPECT_EQ(fail(7), Reason::kErrors);
  EXPECT_EQ(health.unwell(), 1u);
  health.Remove(2);
  EXPECT_EQ(health.unwell(), 0u);
  EXPECT_EQ(fail(7), std::nullopt);
}

TEST_F(ServerHealthTest, AServerThatAsksForTimeIsShunnedSoLong) {
  EXPECT_TRUE(health_.all_usable(now_));
  health_.PushedBack(1, absl::Milliseconds(20), now_);
  EXPECT_TRUE(health_.all_well());
  EXPECT_FALSE(health_.all_usable(now_));
  EXPECT_EQ(StandingOf(1), Standing::kShunned);
  EXPECT_EQ(StandingOf(0), Standing::kUsable);
  health_.PushedBack(1, absl::Milliseconds(5), now_);  // not shorter
  now_ += absl::Milliseconds(19);
  EXPECT_EQ(StandingOf(1), Standing::kShunned);
  EXPECT_TRUE(health_.HasPushedBack(1, now_));
  now_ += absl::Milliseconds(1);
  EXPECT_TRUE(health_.all_usable(now_));
  EXPECT_EQ(StandingOf(1), Standing::kUsable);
  EXPECT_FALSE(health_.HasPushedBack(1, now_));
}

TEST_F(ServerHealthTest, WhoTakesTheSlotIsNotShunnedForTheOneBefore) {
  health_.PushedBack(1, absl::Milliseconds(20), now_);
  health_.Remove(1);
  health_.PushedBack(1, absl::Milliseconds(20), now_);  // of a late call
  health_.Add(1, 7);
  EXPECT_EQ(StandingOf(1), Standing::kUsable);
  health_.PushedBack(1, absl::Milliseconds(20), now_, 7);
  EXPECT_EQ(StandingOf(1), Standing::kShunned);
}

TEST_F(ServerHealthTest, ATimeThatIsTooLongIsCut) {
  health_.PushedBack(1, absl::InfiniteDuration(), now_);
  now_ += options_.longest_push_back;
  EXPECT_TRUE(health_.all_usable(now_));
  EXPECT_EQ(StandingOf(1), Standing::kUsable);
}

TEST_F(ServerHealthTest, ManyThreadsReport) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 5000; ++i) {
        const absl::Time now = now_ + absl::Milliseconds(i);
        health_.CallEnded(
            static_cast<ServerIndex>(i % 4),
            i % 4 == t ? CallOutcome::kFailed : CallOutcome::kAnswered, 1, now);
        health_.StandingOf(static_cast<ServerIndex>(t), i, now);
        health_.IsOut(static_cast<ServerIndex>(t), now);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(health_.unwell(), 2u);
}

}  // namespace
}  // namespace engram
