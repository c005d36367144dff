#include "engram_client/rpc/transport_slots.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/check.h"
#include "tests/unit/engram_client/rpc/scripted_server.h"

namespace engram {
namespace {

TEST(TransportSlotsTest, GivesTheTransportOfTheGenerationAskedFor) {
  ScriptedServer one;
  ScriptedServer two;
  TransportSlots slots(2);
  EXPECT_FALSE(slots.Get(1, 0));
  slots.Open(1, 5, &one);
  EXPECT_EQ(slots.Get(1, 5).operator->(), &one);
  EXPECT_FALSE(slots.Get(1, 4));
  EXPECT_FALSE(slots.Get(0, 5));
  slots.Close(1);
  EXPECT_FALSE(slots.Get(1, 5));
  slots.Open(1, 6, &two);
  EXPECT_FALSE(slots.Get(1, 5));
  EXPECT_EQ(slots.Get(1, 6).operator->(), &two);
}

TEST(TransportSlotsTest, CloseWaitsForThoseWhoUseIt) {
  ScriptedServer server;
  TransportSlots slots(1);
  slots.Open(0, 1, &server);
  std::atomic<bool> closed{false};
  std::thread closing;
  {
    const TransportSlots::Use first = slots.Get(0, 1);
    TransportSlots::Use second = slots.Get(0, 1);
    ASSERT_TRUE(first);
    closing = std::thread([&] {
      slots.Close(0);
      closed = true;
    });
    // Nobody else gets it from then on.
    const absl::Time give_up = absl::Now() + absl::Seconds(60);
    while (slots.Get(0, 1)) {
      ENGRAM_CHECK(absl::Now() < give_up);
      std::this_thread::yield();
    }
    const TransportSlots::Use moved = std::move(second);
    EXPECT_FALSE(second);
    EXPECT_FALSE(closed);
  }
  closing.join();
  EXPECT_TRUE(closed);
}

TEST(TransportSlotsTest, NobodyUsesATransportThatIsGone) {
  TransportSlots slots(1);
  std::atomic<uint64_t> open{0};
  std::atomic<uint64_t> gone{0};  // the last of those that are gone
  std::atomic<int> used_when_gone{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> users;
  for (int t = 0; t < 3; ++t) {
    users.emplace_back([&] {
      while (!stop) {
        const uint64_t generation = open;
        if (const auto server = slots.Get(0, generation)) {
          server->WarmUp();
          if (gone >= generation) ++used_when_gone;
        }
        std::this_thread::yield();
      }
    });
  }
  for (uint64_t generation = 1; generation <= 100; ++generation) {
    auto server = std::make_unique<ScriptedServer>();
    slots.Open(0, generation, server.get());
    open = generation;
    std::this_thread::yield();
    slots.Close(0);
    gone = generation;
  }
  stop = true;
  for (std::thread& user : users) user.join();
  EXPECT_EQ(used_when_gone, 0);
}

}  // namespace
}  // namespace engram
