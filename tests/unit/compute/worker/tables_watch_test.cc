#include "compute/worker/tables_watch.h"

#include <gtest/gtest.h>

#include "absl/time/time.h"

namespace engram {
namespace {

class TablesWatchTest : public ::testing::Test {
 protected:
  // Looks every 10 ms for so long; returns what is said in the end.
  bool Look(bool covered, absl::Duration time) {
    const absl::Time end = now_ + time;
    while (now_ < end) {
      watch_.Observe(covered, now_);
      now_ += absl::Milliseconds(10);
    }
    return watch_.reliable();
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  TablesWatch watch_;
};

TEST_F(TablesWatchTest, AHoleMustLastToCount) {
  EXPECT_TRUE(watch_.reliable());
  EXPECT_TRUE(Look(false, absl::Milliseconds(1000)));
  EXPECT_TRUE(Look(true, absl::Milliseconds(10)));
  EXPECT_TRUE(Look(false, absl::Milliseconds(1000)));
  EXPECT_FALSE(Look(false, absl::Milliseconds(10)));
}

TEST_F(TablesWatchTest, SoMustTheReturn) {
  ASSERT_FALSE(Look(false, absl::Seconds(5)));
  EXPECT_FALSE(Look(true, absl::Milliseconds(200)));
  EXPECT_FALSE(Look(false, absl::Milliseconds(10)));
  EXPECT_FALSE(Look(true, absl::Milliseconds(200)));
  EXPECT_TRUE(Look(true, absl::Milliseconds(10)));
  EXPECT_TRUE(Look(false, absl::Milliseconds(1000)));
}

TEST_F(TablesWatchTest, HolesThatComeAndGoChangeNothing) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(Look(false, absl::Milliseconds(900)));
    EXPECT_TRUE(Look(true, absl::Milliseconds(20)));
  }
}

}  // namespace
}  // namespace engram
