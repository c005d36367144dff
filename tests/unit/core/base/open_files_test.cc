#include "core/base/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace engram {
namespace {

TEST(OpenFilesTest, TheLimitBecomesWhatIsAllowed) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = before.rlim_max / 2;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(RaiseOpenFileLimit(), before.rlim_max);
  rlimit after;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  EXPECT_EQ(RaiseOpenFileLimit(), before.rlim_max);
}

}  // namespace
}  // namespace engram
