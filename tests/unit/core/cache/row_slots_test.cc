#include "core/cache/row_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "tests/unit/core/cache/made_up_rows.h"

namespace engram {
namespace {

const TableKey kTable{1};

class RowSlotsTest : public ::testing::Test {
 protected:
  void Create(size_t row_bytes) {
    row_bytes_ = row_bytes;
    words_.assign(RowSlots::SlotBytes(row_bytes) / 8, 0);
    slots_.emplace(words_.data(), row_bytes);
  }
  void Write(RowId row) {
    slots_->Write(0, CacheKey(kTable, row),
                  MadeUpRows(kTable, {row}, row_bytes_).data());
  }

  size_t row_bytes_ = 0;
  std::vector<uint64_t> words_;
  std::optional<RowSlots> slots_;
};

TEST_F(RowSlotsTest, CountsUsesUpToThree) {
  Create(264);
  Write(7);
  std::vector<std::byte> out(264);
  for (uint64_t uses = 0; uses < 6; ++uses) {
    EXPECT_EQ(CacheKey::UsesIn(slots_->KeyWord(0)),
              std::min(uses, CacheKey::kMaxUses));
    EXPECT_TRUE(slots_->Read(0, CacheKey(kTable, 7), out.data()));
    EXPECT_FALSE(slots_->Read(0, CacheKey(kTable, 8), out.data()));
  }
  slots_->TakeUse(0);
  EXPECT_EQ(CacheKey::UsesIn(slots_->KeyWord(0)), 2u);
  Write(8);
  EXPECT_EQ(CacheKey::UsesIn(slots_->KeyWord(0)), 0u);
}

// Rows so long that many a reading meets a writing.
TEST_F(RowSlotsTest, AReaderNeverGetsPartsOfTwoRows) {
  constexpr size_t kRowBytes = 16 << 10;
  constexpr int kRowsRead = 2000;  // by each reader
  constexpr int kPause = 4;
  Create(kRowBytes);
  std::vector<std::vector<std::byte>> rows;
  for (RowId row = 0; row < 2; ++row) {
    rows.push_back(MadeUpRows(kTable, {row}, kRowBytes));
  }
  std::atomic<int> readers{2};
  std::atomic<int> wrong{0};
  std::thread writer([&] {
    std::vector<std::byte> out(kRowBytes);
    for (RowId row = 0; readers > 0; row ^= 1) {
      slots_->Write(0, CacheKey(kTable, row), rows[row].data());
      // Others read meanwhile, and are not done when the next writing begins.
      for (int i = 0; i < kPause; ++i) {
        slots_->Read(0, CacheKey(kTable, row), out.data());
      }
    }
  });
  std::vector<std::thread> threads;
  for (RowId row = 0; row < 2; ++row) {
    threads.emplace_back([&, row] {
      std::vector<std::byte> out(kRowBytes);
      for (int read = 0; read < kRowsRead;) {
        if (!slots_->Read(0, CacheKey(kTable, row), out.data())) continue;
        wrong += out != rows[row] ? 1 : 0;
        ++read;
      }
      --readers;
    });
  }
  for (std::thread& thread : threads) thread.join();
  writer.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace engram
