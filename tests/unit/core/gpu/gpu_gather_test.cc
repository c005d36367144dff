// Over tests/gpu/fake_cuda: the code of the GPU, run on the CPU.
#include "core/gpu/gpu_gather.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "core/gpu/gather_rows_args.h"
#include "core/gpu/gpu_stream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::testing::HasSubstr;

constexpr std::byte kPoison{0xA5};
constexpr uint32_t kNone = 0xFFFFFFFF;

// A layer whose partitions lie in allocations of their own, each at another
// distance from a line's start, with random bytes in their rows.
class Table {
 public:
  Table(uint64_t row_count, uint32_t rows_log2, uint32_t row_bytes)
      : row_bytes_(row_bytes) {
    const uint64_t rows = uint64_t{1} << rows_log2;
    std::mt19937 random(row_bytes);
    for (uint64_t first = 0; first < row_count; first += rows) {
      const size_t bytes = std::min(rows, row_count - first) * row_bytes;
      const size_t skipped = memory_.size() % 8 * kGatherAlignment;
      // Ends where the last row does, for AddressSanitizer.
      memory_.push_back(std::make_unique<std::byte[]>(skipped + bytes));
      std::byte* const partition = memory_.back().get() + skipped;
      for (size_t i = 0; i < bytes; ++i) {
        partition[i] = static_cast<std::byte>(random());
      }
      partitions_.push_back(partition);
    }
    table_.partition_rows_log2 = rows_log2;
    table_.row_count = row_count;
    table_.row_bytes = row_bytes;
  }

  void Drop(size_t partition) { partitions_[partition] = nullptr; }

  GpuRowTable get() {
    table_.partitions = partitions_.data();
    table_.partition_count = static_cast<uint32_t>(partitions_.size());
    return table_;
  }

  // Null: out of range or not here.
  const std::byte* Row(uint32_t id) const {
    if (id >= table_.row_count) return nullptr;
    const std::byte* const partition =
        partitions_[id >> table_.partition_rows_log2];
    const uint32_t in_partition =
        id & ((uint32_t{1} << table_.partition_rows_log2) - 1);
    return partition == nullptr
               ? nullptr
               : partition + uint64_t{in_partition} * row_bytes_;
  }

 private:
  const uint32_t row_bytes_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<const std::byte*> partitions_;
  GpuRowTable table_;
};

std::vector<uint32_t> RandomIds(size_t count, uint64_t row_count) {
  std::mt19937 random(static_cast<uint32_t>(count));
  std::vector<uint32_t> ids(count);
  for (uint32_t& id : ids) id = static_cast<uint32_t>(random() % row_count);
  return ids;
}

// Gathers into poisoned memory and compares with what a loop would copy.
void CheckGather(Table& table, const std::vector<uint32_t>& ids,
                 uint32_t row_bytes) {
  const auto out = std::make_unique<std::byte[]>(ids.size() * row_bytes);
  std::fill_n(out.get(), ids.size() * row_bytes, kPoison);
  uint32_t first_bad = kNone;
  GatherRowsArgs args;
  args.table = table.get();
  args.row_ids = ids.data();
  args.count = ids.size();
  args.out = out.get();
  args.first_bad = &first_bad;
  const auto stream = GpuStream::Create();
  ASSERT_THAT(stream, test::IsOk());
  ASSERT_THAT(GatherRowsOnGpu(args, (*stream)->handle()), test::IsOk());
  ASSERT_THAT((*stream)->Synchronize(), test::IsOk());
  uint32_t wanted_bad = kNone;
  const std::vector<std::byte> poison(row_bytes, kPoison);
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::byte* wanted = table.Row(ids[i]);
    if (wanted == nullptr) {
      wanted = poison.data();
      wanted_bad = std::min(wanted_bad, static_cast<uint32_t>(i));
    }
    ASSERT_EQ(std::memcmp(&out[i * row_bytes], wanted, row_bytes), 0)
        << "slot " << i << " of " << ids.size() << ", rows of " << row_bytes;
  }
  EXPECT_EQ(first_bad, wanted_bad);
}

TEST(GpuGatherTest, CopiesRowsOfEverySize) {
  for (const uint32_t row_bytes : {1U, 2U, 6U, 12U, 16U, 33U, 66U, 128U, 132U,
                                   136U, 144U, 264U, 528U, 1000U, 4096U}) {
    Table table(300, 6, row_bytes);
    for (const size_t count : {0, 1, 2, 7, 31, 32, 33, 500}) {
      CheckGather(table, RandomIds(count, 300), row_bytes);
    }
  }
}

TEST(GpuGatherTest, CopiesEnoughRowsForEveryShareOfAWarp) {
  Table table(5000, 10, 264);
  for (const size_t count : {8191, 8192, 20000, 40003, 140000}) {
    CheckGather(table, RandomIds(count, 5000), 264);
  }
}

TEST(GpuGatherTest, CopiesTheLastRowAndDuplicates) {
  Table table(257, 8, 264);
  CheckGather(table, {256, 256, 0, 255, 256, 0}, 264);
}

TEST(GpuGatherTest, ReportsTheFirstRowThatIsOutOfRange) {
  Table table(300, 6, 264);
  CheckGather(table, {1, 300, 2, 0xFFFFFFFF, 299}, 264);
  std::vector<uint32_t> ids = RandomIds(400, 300);
  ids[399] = 320;
  CheckGather(table, ids, 264);
  ids[64] = 1000;
  CheckGather(table, ids, 264);
  CheckGather(table, std::vector<uint32_t>(100, 300), 264);
}

TEST(GpuGatherTest, ReportsTheFirstRowThatIsNotHere) {
  for (const uint32_t row_bytes : {33U, 264U, 528U}) {
    Table table(300, 6, row_bytes);
    table.Drop(2);
    CheckGather(table, {1, 2, 127, 128, 191, 192}, row_bytes);
    CheckGather(table, RandomIds(400, 300), row_bytes);
  }
}

TEST(GpuGatherTest, RefusesWhatItCannotGather) {
  Table table(300, 6, 264);
  alignas(16) std::byte out[32];
  GatherRowsArgs args;
  args.table = table.get();
  args.out = out;
  EXPECT_THAT(GatherRowsOnGpu(args, nullptr), test::IsOk());
  args.out = out + 8;
  EXPECT_THAT(GatherRowsOnGpu(args, nullptr),
              test::IsError(absl::StatusCode::kInvalidArgument,
                            HasSubstr("not aligned to 16")));
  args.out = out;
  args.count = uint64_t{1} << 32;
  EXPECT_THAT(GatherRowsOnGpu(args, nullptr),
              test::IsError(absl::StatusCode::kInvalidArgument,
                            HasSubstr("gather of 4294967296 rows")));
  args.count = 0;
  args.table.row_count = 321;
  EXPECT_THAT(GatherRowsOnGpu(args, nullptr),
              test::IsError(absl::StatusCode::kInvalidArgument,
                            HasSubstr("321 rows in partitions for 320")));
  args.table.partition_rows_log2 = 32;
  EXPECT_THAT(GatherRowsOnGpu(args, nullptr),
              test::IsError(absl::StatusCode::kInvalidArgument,
                            HasSubstr("partitions of 2^32 rows")));
  for (const uint32_t row_bytes : {0U, kMaxGatherRowBytes + 1}) {
    args.table.row_bytes = row_bytes;
    EXPECT_THAT(GatherRowsOnGpu(args, nullptr),
                test::IsError(absl::StatusCode::kInvalidArgument,
                              HasSubstr("must be 1 to 1048576")));
  }
}

}  // namespace
}  // namespace engram
