#include "table_server/rebalance/pacer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace engram {
namespace {

class PacerTest : public ::testing::Test {
 protected:
  // One caller that does `pieces` pieces and waits as it is told.
  absl::Duration Run(Pacer& pacer, int pieces, uint64_t bytes,
                     absl::Duration took) {
    const absl::Time began = clock_.Now();
    for (int i = 0; i < pieces; ++i) {
      clock_.Advance(took);
      clock_.Advance(pacer.After(bytes, took));
    }
    return clock_.Now() - began;
  }

  FakeClock clock_{absl::UnixEpoch()};
};

TEST_F(PacerTest, NoBoundNoWait) {
  Pacer pacer({}, clock_);
  EXPECT_EQ(pacer.After(1'000'000'000, absl::Seconds(100)),
            absl::ZeroDuration());
}

TEST_F(PacerTest, BytesPerSecond) {
  Pacer pacer({.bytes_per_second = 1000}, clock_);
  EXPECT_EQ(Run(pacer, 10, 500, absl::Milliseconds(100)), absl::Seconds(5));
}

TEST_F(PacerTest, SlowerThanTheBoundDoesNotWait) {
  Pacer pacer({.bytes_per_second = 1000}, clock_);
  EXPECT_EQ(Run(pacer, 10, 500, absl::Seconds(1)), absl::Seconds(10));
}

TEST_F(PacerTest, AfterAPieceItsTimeOverTheShare) {
  Pacer pacer({.time_share = 0.25}, clock_);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(pacer.After(0, absl::Seconds(1)), absl::Seconds(3));
}

TEST_F(PacerTest, ShareOfTheTime) {
  Pacer pacer({.time_share = 0.25}, clock_);
  EXPECT_EQ(Run(pacer, 8, 1, absl::Milliseconds(500)), absl::Seconds(16));
}

TEST_F(PacerTest, TheTighterBoundHolds) {
  Pacer by_time({.bytes_per_second = 1000, .time_share = 0.5}, clock_);
  EXPECT_EQ(Run(by_time, 4, 1000, absl::Seconds(2)), absl::Seconds(16));
  Pacer by_bytes({.bytes_per_second = 1000, .time_share = 0.5}, clock_);
  EXPECT_EQ(Run(by_bytes, 4, 8000, absl::Seconds(2)), absl::Seconds(32));
}

// Idle time is not saved up.
TEST_F(PacerTest, NoBurstAfterAPause) {
  Pacer pacer({.bytes_per_second = 1000, .time_share = 0.5}, clock_);
  Run(pacer, 1, 1000, absl::Milliseconds(100));
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(Run(pacer, 5, 1000, absl::Milliseconds(100)), absl::Seconds(5));
}

// Three callers at once, each with pieces of 400 bytes and 100 ms, for 60 s:
// how many pieces they did.
int PiecesOfThree(Pacer& pacer, FakeClock& clock) {
  constexpr absl::Duration kPiece = absl::Milliseconds(100);
  const absl::Time end = clock.Now() + absl::Seconds(60);
  std::vector<absl::Time> piece_ends(3, clock.Now() + kPiece);
  for (int pieces = 0;; ++pieces) {
    const auto next = std::min_element(piece_ends.begin(), piece_ends.end());
    if (*next > end) return pieces;
    clock.Advance(*next - clock.Now());
    *next += pacer.After(400, kPiece) + kPiece;
  }
}

TEST_F(PacerTest, CallersShareTheBytes) {
  Pacer pacer({.bytes_per_second = 1000}, clock_);
  EXPECT_NEAR(PiecesOfThree(pacer, clock_), 150, 2);
}

TEST_F(PacerTest, CallersShareTheTime) {
  Pacer pacer({.time_share = 0.5}, clock_);
  EXPECT_NEAR(PiecesOfThree(pacer, clock_), 300, 3);
}

TEST_F(PacerTest, AClockThatIsSetBackMakesNobodyWait) {
  Pacer pacer({.bytes_per_second = 1000, .time_share = 0.5}, clock_);
  Run(pacer, 3, 1000, absl::Milliseconds(100));
  clock_.Advance(-absl::Hours(1));
  EXPECT_LE(pacer.After(1000, absl::Milliseconds(100)), absl::Seconds(2));
  EXPECT_LE(pacer.After(1000, -absl::Hours(1)), absl::Seconds(3));
}

}  // namespace
}  // namespace engram
