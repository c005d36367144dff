#include "tests/gpu/check/gather_cases.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tests/gpu/check/random_inputs.h"

namespace engram::gpu_check {
namespace {

constexpr size_t kAlignment = 16;

GatherCase MakeCase(Random& random, uint32_t row_bytes, uint32_t log2,
                    uint64_t row_count, size_t count) {
  GatherCase gather;
  gather.name = absl::StrCat(count, " rows of ", row_bytes, " bytes");
  gather.row_bytes = row_bytes;
  gather.partition_rows_log2 = log2;
  gather.row_count = row_count;
  gather.present.assign((row_count + (uint64_t{1} << log2) - 1) >> log2, true);
  for (size_t i = 0; i < count; ++i) {
    gather.row_ids.push_back(random.Below(static_cast<uint32_t>(row_count)));
  }
  if (count > 1) {  // both ends of the table
    gather.row_ids[random.Below(static_cast<uint32_t>(count))] = 0;
    gather.row_ids.back() = static_cast<uint32_t>(row_count - 1);
  }
  return gather;
}

GatherCase WithBadRows(Random& random, GatherCase gather) {
  const auto count = static_cast<uint32_t>(gather.row_ids.size());
  gather.name += ", some out of range or not here";
  gather.present[gather.present.size() / 2] = false;
  const auto rows = static_cast<uint32_t>(gather.row_count);
  for (const uint32_t bad : {rows, rows + 1, 0xFFFFFFFFU, 0x80000000U}) {
    gather.row_ids[random.Below(count)] = bad;
  }
  return gather;
}

// Row `id` in the table's bytes; null if it is bad.
const std::byte* FindRow(const GatherCase& gather,
                         const std::vector<std::byte>& table, uint32_t id) {
  if (id >= gather.row_count) return nullptr;
  const size_t partition = id >> gather.partition_rows_log2;
  if (!gather.present[partition]) return nullptr;
  const size_t row = id - (partition << gather.partition_rows_log2);
  return &table[partition * gather.partition_stride() + row * gather.row_bytes];
}

}  // namespace

size_t GatherCase::partition_stride() const {
  const size_t bytes = (size_t{1} << partition_rows_log2) * row_bytes;
  // One more alignment: partitions are then at every multiple of 16 in a line.
  return (bytes / kAlignment + 2) * kAlignment;
}

std::vector<GatherCase> GatherCases(bool quick, uint64_t seed) {
  Random random(seed);
  std::vector<GatherCase> cases;
  const std::vector<size_t> counts =
      quick ? std::vector<size_t>{0, 1, 33, 300}
            : std::vector<size_t>{0, 1, 7, 31, 32, 33, 257, 1536, 6144, 100003};
  for (const size_t count : counts) {
    cases.push_back(MakeCase(random, 264, 6, 1000, count));
  }
  const size_t few = quick ? 70 : 2000;
  for (const uint32_t row_bytes :
       {1, 2, 4, 8, 16, 17, 33, 66, 132, 198, 272, 528, 1056, 2112, 5000}) {
    cases.push_back(MakeCase(random, row_bytes, 4, 333, few));
  }
  cases.push_back(WithBadRows(random, MakeCase(random, 264, 6, 1000, few)));
  cases.push_back(WithBadRows(random, MakeCase(random, 33, 3, 1000, few)));
  GatherCase nothing = MakeCase(random, 264, 5, 100, 40);
  nothing.name += ", none of them here";
  nothing.present.assign(nothing.present.size(), false);
  cases.push_back(nothing);
  return cases;
}

std::vector<std::byte> TableBytes(const GatherCase& gather, uint64_t seed) {
  std::vector<std::byte> table(gather.partition_count() *
                               gather.partition_stride());
  FillRandomBytes(absl::MakeSpan(table), seed);
  return table;
}

GatherResult WantedGather(const GatherCase& gather,
                          const std::vector<std::byte>& table,
                          std::byte poison) {
  GatherResult wanted;
  wanted.out.assign(gather.row_ids.size() * gather.row_bytes + kGatherGuard,
                    poison);
  for (size_t i = 0; i < gather.row_ids.size(); ++i) {
    const std::byte* row = FindRow(gather, table, gather.row_ids[i]);
    if (row != nullptr) {
      std::memcpy(&wanted.out[i * gather.row_bytes], row, gather.row_bytes);
    } else {
      wanted.first_bad = std::min(wanted.first_bad, static_cast<uint32_t>(i));
    }
  }
  return wanted;
}

absl::Status CompareGather(const GatherCase& gather, const GatherResult& got,
                           const GatherResult& wanted) {
  if (got.first_bad != wanted.first_bad) {
    return absl::DataLossError(
        absl::StrCat(gather.name, ": the first bad row is reported as ",
                     got.first_bad, ", it is ", wanted.first_bad));
  }
  if (got.out.size() != wanted.out.size()) {
    return absl::DataLossError(absl::StrCat(gather.name, ": ", got.out.size(),
                                            " bytes instead of ",
                                            wanted.out.size()));
  }
  const auto differ =
      std::mismatch(got.out.begin(), got.out.end(), wanted.out.begin());
  if (differ.first == got.out.end()) return absl::OkStatus();
  const size_t at = differ.first - got.out.begin();
  const size_t slot = at / gather.row_bytes;
  if (slot >= gather.row_ids.size()) {
    return absl::DataLossError(
        absl::StrCat(gather.name, ": byte ", at, " past the end was written"));
  }
  return absl::DataLossError(absl::StrCat(
      gather.name, ": slot ", slot, ", row ", gather.row_ids[slot], ", byte ",
      at % gather.row_bytes, " is ",
      absl::Hex(std::to_integer<int>(*differ.first)), " instead of ",
      absl::Hex(std::to_integer<int>(*differ.second))));
}

}  // namespace engram::gpu_check
