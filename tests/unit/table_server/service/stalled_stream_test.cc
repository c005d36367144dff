// Callers that leave what is sent to them where it is.
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/unit/table_server/service/gather_stream_fixture.h"

namespace engram {
namespace {

using StalledStreamTest = test::GatherStreamFixture;

// Of a gather that is not sent to its end nothing may be freed, so that a
// caller must not be able to keep one for as long as it likes.
TEST_F(StalledStreamTest, ACallerThatTakesNothingLosesItsStream) {
  const ServiceLimits limits{.stall = absl::Milliseconds(1)};
  Start(limits);
  FixWindow();
  Open();
  // More than what may be on its way.
  for (uint64_t id = 0; id < 16; ++id) Ask(id, Request(0, ManyIds(65536)));
  prometheus::Gauge* const in_flight = metrics_.gauges().gathers_in_flight;
  ASSERT_TRUE(test::Eventually([&] { return Gauge(in_flight) > 0; }));
  EXPECT_TRUE(test::Eventually([&] {
    clock_.Advance(limits.stall);
    return Gauge(in_flight) == 0;
  }));
  EXPECT_EQ(Finish().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace engram
