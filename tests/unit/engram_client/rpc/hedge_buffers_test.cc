#include "engram_client/rpc/hedge_buffers.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

namespace engram {
namespace {

TEST(HedgeBuffersTest, TheBoundIsOfAllTogether) {
  const auto gauge = std::make_shared<prometheus::Gauge>();
  const auto buffers = std::make_shared<HedgeBuffers>(100, gauge);
  std::optional<HedgeBuffers::Buffer> a(buffers->Take(60));
  ASSERT_TRUE(*a);
  EXPECT_EQ(a->bytes().size(), 60u);
  EXPECT_FALSE(buffers->Take(41));
  {
    const HedgeBuffers::Buffer b = buffers->Take(40);
    ASSERT_TRUE(b);
    EXPECT_EQ(buffers->used_bytes(), 100u);
    EXPECT_EQ(gauge->Value(), 100);
  }
  EXPECT_EQ(buffers->used_bytes(), 60u);
  HedgeBuffers::Buffer moved = std::move(*a);
  a.reset();
  EXPECT_EQ(moved.bytes().size(), 60u);
  EXPECT_EQ(gauge->Value(), 60);
  EXPECT_FALSE(buffers->Take(~size_t{0}));
}

TEST(HedgeBuffersTest, ABufferMayOutliveThem) {
  const auto gauge = std::make_shared<prometheus::Gauge>();
  auto buffers = std::make_shared<HedgeBuffers>(100, gauge);
  {
    const HedgeBuffers::Buffer buffer = buffers->Take(10);
    buffers.reset();
    buffer.bytes()[9] = std::byte{1};
  }
  EXPECT_EQ(gauge->Value(), 0);
}

}  // namespace
}  // namespace engram
