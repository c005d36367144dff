#include "engram_client/rpc/transport_slots.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

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
    while (slots.Get(0, 1)) std::this_thread::yield();
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
  std::atomic<bool> stop{false};
  std::vector<std::thread> users;
  for (int t = 0; t < 3; ++t) {
    users.emplace_back([&] {
      while (!stop) {
        if (const auto server = slots.Get(0, open)) server->WarmUp();
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
  }
  stop = true;
  for (std::thread& user : users) user.join();
}

}  // namespace
}  // namespace engram
