#include "table_server/tier/slot_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<SlotMemory> Create(size_t slot_bytes, size_t slot_count) {
  auto memory = SlotMemory::Create(slot_bytes, slot_count, {});
  EXPECT_THAT(memory, IsOk());
  return *std::move(memory);
}

std::byte* Take(SlotMemory& memory) {
  const absl::StatusOr<std::byte*> slot = memory.Take();
  EXPECT_THAT(slot, IsOk());
  return slot.value_or(nullptr);
}

bool IsAll(const std::byte* slot, size_t bytes, int value) {
  return std::all_of(slot, slot + bytes, [&](std::byte found) {
    return found == static_cast<std::byte>(value);
  });
}

// Whether the process has memory for the page of `address`.
bool IsResident(std::byte* address) {
  const size_t page = PageBuffer::PageBytes();
  const auto offset = reinterpret_cast<uintptr_t>(address) % page;
  unsigned char state = 0;
  EXPECT_EQ(mincore(address - offset, page, &state), 0);
  return (state & 1) != 0;
}

TEST(SlotMemoryTest, TheLowestFreeSlotIsTaken) {
  const auto memory = Create(100, 4);
  std::byte* const first = Take(*memory);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % (2 << 20), 0U);
  EXPECT_EQ(Take(*memory), first + 100);
  EXPECT_EQ(Take(*memory), first + 200);
  memory->Give(first + 100);
  memory->Give(first);
  EXPECT_EQ(Take(*memory), first);
  EXPECT_EQ(Take(*memory), first + 100);
  EXPECT_EQ(Take(*memory), first + 300);
  EXPECT_THAT(memory->Take(),
              IsError(absl::StatusCode::kResourceExhausted,
                      AllOf(HasSubstr("all 4 slots"), HasSubstr("100 bytes"))));
  memory->Give(first + 200);
  EXPECT_EQ(Take(*memory), first + 200);
}

TEST(SlotMemoryTest, OnlyLargeSlotsAreRoundedToPages) {
  const size_t page = PageBuffer::PageBytes();
  for (const size_t bytes : {size_t{1}, page - 1, page + 1, 63 * page + 1}) {
    EXPECT_EQ(SlotMemory::SlotBytes(bytes), bytes);
  }
  EXPECT_EQ(SlotMemory::SlotBytes(64 * page), 64 * page);
  EXPECT_EQ(SlotMemory::SlotBytes(64 * page + 1), 65 * page);
}

TEST(SlotMemoryTest, MemoryOfASlotThatIsGivenBackIsGone) {
  const size_t page = PageBuffer::PageBytes();
  const size_t bytes = 600 * page + 264;  // a huge page and some
  const size_t slot_bytes = SlotMemory::SlotBytes(bytes);
  const auto memory = Create(bytes, 1000);
  std::vector<std::byte*> slots;
  for (int i = 0; i < 5; ++i) {
    slots.push_back(Take(*memory));
    std::memset(slots.back(), 0x11 * i + 1, bytes);
  }
  memory->Give(slots[1]);
  memory->Give(slots[3]);
  memory->Give(slots[2]);
  for (const size_t i : {1, 2, 3}) {
    for (size_t at = 0; at < slot_bytes; at += page) {
      EXPECT_FALSE(IsResident(slots[i] + at)) << i << " at " << at;
    }
  }
  for (const int i : {0, 4}) {
    EXPECT_TRUE(IsResident(slots[i] + slot_bytes - 1));
    EXPECT_TRUE(IsAll(slots[i], bytes, 0x11 * i + 1));
  }
  EXPECT_EQ(Take(*memory), slots[1]);
  EXPECT_TRUE(IsAll(slots[1], slot_bytes, 0));
}

TEST(SlotMemoryTest, APageGoesWithTheLastSlotInIt) {
  const size_t page = PageBuffer::PageBytes();
  const size_t bytes = page / 2 + page / 8;  // of 8 slots, 5 pages
  const auto memory = Create(bytes, 8);
  std::vector<std::byte*> slots;
  for (int i = 0; i < 8; ++i) {
    slots.push_back(Take(*memory));
    std::memset(slots.back(), i + 1, bytes);
  }
  memory->Give(slots[0]);
  EXPECT_TRUE(IsResident(slots[0]));
  EXPECT_TRUE(IsAll(slots[1], bytes, 2));
  memory->Give(slots[1]);  // is on the first page and the second
  EXPECT_FALSE(IsResident(slots[0]));
  EXPECT_TRUE(IsAll(slots[2], bytes, 3));
  memory->Give(slots[7]);
  EXPECT_TRUE(IsResident(slots[7]));
  memory->Give(slots[6]);  // is on the last page and the one before
  EXPECT_FALSE(IsResident(slots[7]));
  EXPECT_TRUE(IsResident(slots[6]));
  for (int i = 2; i < 6; ++i) EXPECT_TRUE(IsAll(slots[i], bytes, i + 1));
  for (int i = 5; i >= 2; --i) memory->Give(slots[i]);
  for (size_t at = 0; at < 5 * page; at += page) {
    EXPECT_FALSE(IsResident(slots[0] + at)) << at;
  }
}

TEST(SlotMemoryTest, AddressesAreBounded) {
  for (const auto& [bytes, count] : {std::pair<size_t, size_t>{0, 1},
                                     {SIZE_MAX, 1},
                                     {SIZE_MAX / 8, 9},
                                     {size_t{1} << 40, size_t{1} << 20}}) {
    EXPECT_THAT(
        SlotMemory::Create(bytes, count, {}),
        IsError(absl::StatusCode::kResourceExhausted, HasSubstr("cannot map")));
  }
  // Nodes that the machine may not have: placing is best effort.
  const std::vector<int> nodes = {0, 1};
  EXPECT_THAT(SlotMemory::Create(100, 5, nodes), IsOk());
}

TEST(SlotMemoryDeathTest, OnlyWhatIsTakenIsGivenBack) {
  const auto memory = Create(100, 4);
  std::byte* const slot = Take(*memory);
  EXPECT_DEATH(memory->Give(slot + 1), "slot_bytes_");
  EXPECT_DEATH(memory->Give(slot + 100), "taken_");
}

// Slots that share pages, each with its owner's pattern as long as it is taken.
TEST(SlotMemoryTest, NeighboursComeAndGoWithoutHarm) {
  constexpr size_t kThreads = 4;
  constexpr size_t kBytes = 1100;
  const auto memory = Create(kBytes, 2 * kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      std::vector<std::byte*> mine;
      const int value = static_cast<int>(t) + 1;
      for (int step = 0; step < 2000; ++step) {
        if (mine.size() < 2 && (mine.empty() || random() % 2 == 0)) {
          mine.push_back(Take(*memory));
          std::memset(mine.back(), value, kBytes);
        } else {
          const size_t i = random() % mine.size();
          EXPECT_TRUE(IsAll(mine[i], kBytes, value));
          memory->Give(mine[i]);
          mine.erase(mine.begin() + static_cast<ptrdiff_t>(i));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace engram
