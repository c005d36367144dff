#include "compute/worker/fair_share.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace engram {
namespace {

using Verdict = FairShare::Verdict;

CallerId Caller(int i) { return {absl::StrCat("caller", i)}; }

// As much as it can get, one by one.
uint64_t TakeAll(FairShare& share, const CallerId& caller) {
  while (share.Take(caller, 1) == Verdict::kTaken) {
  }
  return share.HeldBy(caller);
}

// A quarter of what each of the callers up to `last` holds ends, then all ask
// in turn until nobody gets any more.
void EndSomeAndAskOn(FairShare& share, int last) {
  for (int caller = 0; caller <= last; ++caller) {
    share.Give(Caller(caller), share.HeldBy(Caller(caller)) / 4);
  }
  for (bool some = true; some;) {
    some = false;
    for (int caller = 0; caller <= last; ++caller) {
      some |= share.Take(Caller(caller), 1) == Verdict::kTaken;
    }
  }
}

TEST(FairShareTest, ACallerThatIsAloneLeavesAQuarter) {
  FairShare share(1024);
  EXPECT_EQ(TakeAll(share, Caller(0)), 768);
  EXPECT_EQ(share.Take(Caller(0), 1), Verdict::kAboveShare);
  EXPECT_EQ(share.used(), 768);
}

TEST(FairShareTest, ANewcomerIsTakenHoweverManyHaveAllTheyCanGet) {
  FairShare share(1024);
  for (int newcomer = 0; newcomer < 20; ++newcomer) {
    ASSERT_EQ(share.Take(Caller(newcomer), 1), Verdict::kTaken) << newcomer;
    // All ask on, and what they hold ends in turn: they come to equal parts.
    for (int round = 0; round < 50; ++round) EndSomeAndAskOn(share, newcomer);
    const uint64_t part = 3 * share.limit() / (3 * (newcomer + 1) + 1);
    EXPECT_GE(share.limit() - share.used(), part / 4) << newcomer;
    for (int caller = 0; caller <= newcomer; ++caller) {
      EXPECT_NEAR(share.HeldBy(Caller(caller)), part, 2 + part / 8)
          << caller << " of " << newcomer + 1;
    }
  }
}

TEST(FairShareTest, WhoHoldsTooMuchIsRefusedFirst) {
  FairShare share(100);
  EXPECT_EQ(TakeAll(share, Caller(0)), 75);
  EXPECT_EQ(TakeAll(share, Caller(1)), 18);
  share.Give(Caller(0), 10);
  EXPECT_EQ(share.Take(Caller(0), 1), Verdict::kAboveShare);
  EXPECT_EQ(share.Take(Caller(1), 1), Verdict::kTaken);
}

TEST(FairShareTest, WhoHoldsNothingGetsWhateverFits) {
  FairShare share(100);
  EXPECT_EQ(share.Take(Caller(0), 101), Verdict::kFull);
  EXPECT_EQ(share.callers(), 0);
  EXPECT_EQ(share.Take(Caller(0), 90), Verdict::kTaken);
  EXPECT_EQ(share.Take(Caller(1), 11), Verdict::kFull);
  EXPECT_EQ(share.Take(Caller(1), 10), Verdict::kTaken);
  EXPECT_EQ(share.Take(Caller(2), 1), Verdict::kFull);
  EXPECT_EQ(share.callers(), 2);
  share.Give(Caller(0), 90);
  share.Give(Caller(1), 10);
  EXPECT_EQ(share.used(), 0);
  EXPECT_EQ(share.callers(), 0);
}

TEST(FairShareTest, NothingIsAlwaysTaken) {
  FairShare share(10);
  EXPECT_EQ(share.Take(Caller(0), 10), Verdict::kTaken);
  EXPECT_EQ(share.Take(Caller(0), 0), Verdict::kTaken);
  EXPECT_EQ(share.Take(Caller(1), 0), Verdict::kTaken);
  EXPECT_EQ(share.callers(), 1);
}

TEST(FairShareTest, ALimitForSoMuchIsTheLeastThatGivesItBitByBit) {
  for (const uint64_t amount : {2, 3, 4, 100, 1024}) {
    FairShare enough(FairShare::LimitFor(amount));
    EXPECT_EQ(TakeAll(enough, Caller(0)), amount);
    FairShare less(FairShare::LimitFor(amount) - 1);
    EXPECT_LT(TakeAll(less, Caller(0)), amount);
  }
}

}  // namespace
}  // namespace engram
