#include "table_server/service/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/wire/error_detail.h"
#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::engram::test::IsOk;
using ::testing::HasSubstr;

TEST(AdmissionTest, BoundsCallsAndBytes) {
  Admission admission({.max_gathers = 2, .max_bytes = 100});
  auto first = admission.Enter(60);
  ASSERT_THAT(first, IsOk());
  const auto too_many_bytes = admission.Enter(41);
  EXPECT_EQ(ReasonOf(too_many_bytes.status()), ErrorReason::kOverloaded);
  EXPECT_TRUE(RetryAfterOf(too_many_bytes.status()).has_value());
  EXPECT_THAT(std::string(too_many_bytes.status().message()),
              HasSubstr("limits are 2 and 100"));
  auto second = admission.Enter(40);
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(ReasonOf(admission.Enter(0).status()), ErrorReason::kOverloaded);
  EXPECT_EQ(admission.usage().gathers, 2U);
  EXPECT_EQ(admission.usage().bytes, 100U);
}

TEST(AdmissionTest, WhatWouldBeTooLateIsRefused) {
  constexpr absl::Duration kMs = absl::Milliseconds(1);
  Admission admission({.max_bytes = 1 << 20, .small_bytes = 100});
  {
    const auto alone = admission.Enter(1000, 1000, kMs);
    ASSERT_THAT(alone, IsOk());
    admission.Took(*alone, 10 * kMs);
  }
  std::vector<Admission::Ticket> tickets;
  for (int i = 0; i < 4; ++i) {
    auto ticket = admission.Enter(1000, 1000, (i + 1) * 10 * kMs);
    ASSERT_THAT(ticket, IsOk());
    tickets.push_back(*std::move(ticket));
  }
  const auto late = admission.Enter(1000, 1000, 49 * kMs);
  EXPECT_EQ(ReasonOf(late.status()), ErrorReason::kOverloaded);
  EXPECT_TRUE(RetryAfterOf(late.status()).has_value());
  EXPECT_THAT(std::string(late.status().message()),
              HasSubstr("with 4 large gathers in flight this one would take "
                        "50ms, its caller waits for 49ms"));
  EXPECT_EQ(admission.usage().gathers, 4U);
  EXPECT_THAT(admission.Enter(1000), IsOk());           // has time
  EXPECT_THAT(admission.Enter(100, 100, kMs), IsOk());  // is small
  // Alone it is tried, whatever is expected.
  tickets.clear();
  EXPECT_THAT(admission.Enter(1000, 1000, kMs), IsOk());
}

// Those wait for a disk: the threads are free for others.
TEST(AdmissionTest, ThosePausedMakeNoOtherLate) {
  constexpr absl::Duration kMs = absl::Milliseconds(1);
  Admission admission({.max_bytes = 1 << 20, .small_bytes = 100});
  {
    const auto alone = admission.Enter(1000, 1000, kMs);
    ASSERT_THAT(alone, IsOk());
    admission.Took(*alone, 10 * kMs);
  }
  std::vector<Admission::Ticket> tickets;
  for (int i = 0; i < 4; ++i) {
    tickets.push_back(*admission.Enter(1000, 1000));
    admission.Paused(tickets.back());
  }
  EXPECT_EQ(admission.usage().gathers, 4U);
  {
    const auto in_time = admission.Enter(1000, 1000, 10 * kMs);
    ASSERT_THAT(in_time, IsOk());
    // As if it had been alone: what is foretold stays the same.
    admission.Took(*in_time, 10 * kMs);
  }
  EXPECT_FALSE(admission.Enter(1000, 1000, 9 * kMs).ok());
  for (const Admission::Ticket& ticket : tickets) admission.Resumed(ticket);
  EXPECT_FALSE(admission.Enter(1000, 1000, 49 * kMs).ok());
  EXPECT_THAT(admission.Enter(1000, 1000, 50 * kMs), IsOk());
}

TEST(AdmissionTest, WhatIsSmallSaysNothingOfTheLarge) {
  Admission admission({.max_bytes = 1 << 20, .small_bytes = 100});
  const auto small = admission.Enter(100);
  ASSERT_THAT(small, IsOk());
  admission.Took(*small, absl::Seconds(100));
  const auto large = admission.Enter(1000);
  EXPECT_THAT(admission.Enter(1000, 1000, absl::Milliseconds(1)), IsOk());
}

TEST(AdmissionTest, LargeGathersLeaveSomeForSmallOnes) {
  Admission admission(
      {.max_gathers = 16, .max_bytes = 1 << 20, .small_bytes = 100});
  std::vector<Admission::Ticket> tickets;
  for (int i = 0; i < 14; ++i) {
    auto ticket = admission.Enter(101);
    ASSERT_THAT(ticket, IsOk());
    tickets.push_back(*std::move(ticket));
  }
  EXPECT_EQ(admission.large_usage().gathers, 14U);
  EXPECT_EQ(admission.large_usage().bytes, 14U * 101);
  const auto refused = admission.Enter(101);
  EXPECT_EQ(ReasonOf(refused.status()), ErrorReason::kOverloaded);
  EXPECT_TRUE(RetryAfterOf(refused.status()).has_value());
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("14 large gathers of 1414 bytes are in flight, the "
                        "limits are 14 and 917504"));
  for (int i = 0; i < 2; ++i) {
    auto ticket = admission.Enter(100);
    ASSERT_THAT(ticket, IsOk());
    tickets.push_back(*std::move(ticket));
  }
  EXPECT_THAT(std::string(admission.Enter(1).status().message()),
              HasSubstr("16 gathers of 1614 bytes"));
  tickets.erase(tickets.begin());
  EXPECT_EQ(admission.large_usage().gathers, 13U);
  EXPECT_EQ(admission.usage().gathers, 15U);
  EXPECT_THAT(admission.Enter(101), IsOk());
  tickets.clear();
  EXPECT_EQ(admission.large_usage().gathers, 0U);
  EXPECT_EQ(admission.large_usage().bytes, 0U);
}

TEST(AdmissionTest, LargeGathersLeaveBytesForSmallOnes) {
  Admission admission(
      {.max_gathers = 100, .max_bytes = 1000, .small_bytes = 100});
  const auto first = admission.Enter(600);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(ReasonOf(admission.Enter(276).status()), ErrorReason::kOverloaded);
  const auto second = admission.Enter(275);
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(admission.Enter(100), IsOk());
}

TEST(AdmissionTest, SmallGathersMayUseEverything) {
  Admission admission(
      {.max_gathers = 2, .max_bytes = 1000, .small_bytes = 500});
  const auto first = admission.Enter(500);
  const auto second = admission.Enter(500);
  EXPECT_THAT(first, IsOk());
  EXPECT_THAT(second, IsOk());
  EXPECT_EQ(admission.large_usage().gathers, 0U);
}

TEST(AdmissionTest, AsksForMoreThanItHoldsAtATime) {
  Admission admission(
      {.max_gathers = 2, .max_bytes = 1000, .small_bytes = 100});
  const auto first = admission.Enter(50, 5000);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(admission.large_usage().bytes, 50U);
  EXPECT_EQ(ReasonOf(admission.Enter(50, 5000).status()),
            ErrorReason::kOverloaded);
  EXPECT_THAT(admission.Enter(50), IsOk());
}

TEST(AdmissionTest, OneLargeGatherIsAlwaysAllowed) {
  for (const uint64_t gathers : {1, 2, 7, 8, 9}) {
    const Admission::Options options = {
        .max_gathers = gathers, .max_bytes = 1000, .small_bytes = 100};
    EXPECT_EQ(options.max_large_gathers(), gathers == 1 ? 1 : gathers * 7 / 8);
    Admission admission(options);
    EXPECT_THAT(admission.Enter(101), IsOk());
  }
}

TEST(AdmissionTest, TicketsGiveBackOnce) {
  Admission admission({.max_gathers = 1, .max_bytes = 100});
  Admission::Ticket ticket = *admission.Enter(100);
  Admission::Ticket moved = std::move(ticket);
  EXPECT_EQ(admission.usage().bytes, 100U);
  moved = Admission::Ticket();
  EXPECT_EQ(admission.usage().bytes, 0U);
  EXPECT_EQ(admission.usage().gathers, 0U);
}

TEST(AdmissionTest, ManyThreadsNeverPassTheBound) {
  Admission admission({.max_gathers = 3, .max_bytes = 1000});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const auto ticket = admission.Enter(10);
        EXPECT_LE(admission.usage().gathers, 3U);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admission.usage().gathers, 0U);
  EXPECT_EQ(admission.usage().bytes, 0U);
}

}  // namespace
}  // namespace engram
