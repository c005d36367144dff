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
