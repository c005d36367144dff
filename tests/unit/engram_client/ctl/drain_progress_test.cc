#include "engram_client/ctl/drain_progress.h"

#include "gtest/gtest.h"

namespace engram::ctl {
namespace {

using State = DrainProgress::State;

constexpr uint64_t kInstance = 7;
const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

absl::Time At(int seconds) { return kStart + absl::Seconds(seconds); }

// Holds the partitions of `bitmap`.
v1::ExchangeResponse Says(const std::string& bitmap, uint64_t to_free,
                          uint64_t lingering) {
  v1::ExchangeResponse response;
  response.set_instance_id(kInstance);
  response.set_leaving(true);
  response.add_held()->set_bitmap(bitmap);
  response.mutable_moves()->set_to_free(to_free);
  response.mutable_moves()->set_lingering(lingering);
  return response;
}

TEST(DrainProgressTest, FromFullToEmpty) {
  DrainProgress progress("t2", kInstance, kStart);
  EXPECT_EQ(progress.text(kStart), "t2: told to leave");
  EXPECT_EQ(progress.Answered(Says("\xff\x0f", 12, 0), At(0)),
            State::kUnderWay);
  EXPECT_EQ(progress.text(At(0)), "t2: 12 of 12 partitions still to hand over");
  EXPECT_EQ(progress.Answered(Says("\x0f", 4, 8), At(4)), State::kUnderWay);
  EXPECT_EQ(progress.text(At(4)),
            "t2: 4 of 12 partitions still to hand over, 2/s, 2 s left");
  EXPECT_EQ(progress.Answered(Says("", 0, 4), At(6)), State::kUnderWay);
  EXPECT_EQ(progress.text(At(6)),
            "t2: all 12 partitions handed over, still answers for 4");
  EXPECT_EQ(progress.Answered(Says("", 0, 0), At(9)), State::kDone);
}

TEST(DrainProgressTest, EmptyBeforeItLeavesIsNotDone) {
  DrainProgress progress("t2", kInstance, kStart);
  v1::ExchangeResponse response = Says("", 0, 0);
  response.set_leaving(false);
  EXPECT_EQ(progress.Answered(response, At(0)), State::kUnderWay);
}

TEST(DrainProgressTest, SaysWhatItWaitsFor) {
  DrainProgress progress("t2", kInstance, kStart);
  v1::ExchangeResponse response = Says("\x01", 1, 0);
  response.mutable_moves()->set_waiting_for("another\nmember");
  EXPECT_EQ(progress.Answered(response, At(0)), State::kUnderWay);
  EXPECT_EQ(progress.Answered(response, At(5)), State::kUnderWay);
  EXPECT_EQ(progress.text(At(5)),
            "t2: 1 of 1 partitions still to hand over; it waits for: another "
            "member");
}

TEST(DrainProgressTest, ARestartBringsItBack) {
  DrainProgress progress("t2", kInstance, kStart);
  v1::ExchangeResponse response = Says("", 0, 0);
  response.set_instance_id(kInstance + 1);
  EXPECT_EQ(progress.Answered(response, At(1)), State::kRestarted);
}

TEST(DrainProgressTest, SilenceIsBorneForAWhile) {
  DrainProgress progress("t2", kInstance, kStart);
  const absl::Status refused = absl::UnavailableError("refused");
  EXPECT_EQ(progress.Silent(refused, At(59)), State::kUnderWay);
  EXPECT_EQ(progress.text(At(59)), "t2: no answer for 59 s: refused");
  EXPECT_EQ(progress.Answered(Says("\x01", 1, 0), At(59)), State::kUnderWay);
  EXPECT_EQ(progress.Silent(refused, At(118)), State::kUnderWay);
  EXPECT_EQ(progress.Silent(refused, At(119)), State::kLost);
}

}  // namespace
}  // namespace engram::ctl
