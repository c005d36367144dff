#include "core/base/progress.h"

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram {
namespace {

using testing::HasSubstr;

TEST(FormatTest, BytesForPeople) {
  EXPECT_EQ(FormatBytes(264), "264 B");
  EXPECT_EQ(FormatBytes(999949), "999.9 kB");
  EXPECT_EQ(FormatBytes(999951), "1.0 MB");
  EXPECT_EQ(FormatBytes(202800000000), "202.8 GB");
  EXPECT_EQ(FormatRate(500000000, absl::Seconds(2)), "250 MB/s");
  EXPECT_EQ(FormatRate(1, absl::ZeroDuration()), "-");
}

TEST(ProgressTextTest, SaysHowLongItTakes) {
  EXPECT_EQ(ProgressText(250000000, 1000000000, absl::Seconds(5)),
            "250.0 MB of 1.0 GB (25 %), 50 MB/s, 15 s left");
  EXPECT_EQ(ProgressText(10, 10, absl::Seconds(1)),
            "10 B of 10 B (100 %), 0 MB/s");
  EXPECT_EQ(ProgressText(0, 0, absl::ZeroDuration()), "0 B of 0 B (100 %), -");
}

class ProgressTest : public testing::Test {
 protected:
  ProgressTest() : file_(open_memstream(&data_, &size_)) {}
  ~ProgressTest() override {
    std::fclose(file_);
    std::free(data_);
  }
  std::string Written() {
    std::fflush(file_);
    return std::string(data_, size_);
  }

  char* data_ = nullptr;
  size_t size_ = 0;
  std::FILE* file_;
  FakeClock clock_{absl::FromUnixSeconds(1000)};
};

TEST_F(ProgressTest, LinesComeEveryFewSeconds) {
  Progress progress("work", file_, clock_, ProgressStyle::kLines);
  progress.Update(1, 100);
  clock_.Advance(absl::Seconds(4));
  progress.Update(40, 100);
  EXPECT_EQ(Written(), "");
  clock_.Advance(absl::Seconds(1));
  progress.Update(50, 100);
  progress.Update(51, 100);
  EXPECT_EQ(Written(), "work: 50 B of 100 B (50 %), 0 MB/s, 5 s left\n");
}

TEST_F(ProgressTest, ABarIsDrawnOverItselfAndWiped) {
  {
    Progress progress("work", file_, clock_, ProgressStyle::kBar);
    clock_.Advance(absl::Seconds(1));
    progress.Update(50, 100);
    EXPECT_THAT(Written(),
                HasSubstr("\r\x1b[Kwork [############------------] 50 B"));
    EXPECT_THAT(Written(), testing::Not(HasSubstr("\n")));
  }
  EXPECT_THAT(Written(), testing::EndsWith("\r\x1b[K"));
}

}  // namespace
}  // namespace engram
