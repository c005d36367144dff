#include "engram_client/ctl/load_row_check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"

namespace engram::ctl {
namespace {

// Rows that are read from the reference in one go: what they take stays in
// the first-level cache.
constexpr size_t kBatchRows = 64;

constexpr uint64_t kMaxSampleStep = 1'000'000'000;

// The first of the call's rows at or after `offset` that the sample takes.
uint64_t FirstAtOrAfter(const RowSample& sample, uint64_t offset) {
  if (offset <= sample.first) return sample.first;
  const uint64_t steps =
      (offset - sample.first + sample.step - 1) / sample.step;
  return sample.first + steps * sample.step;
}

}  // namespace

absl::StatusOr<uint64_t> ParseCheck(absl::string_view text) {
  if (text == "all") return 1;
  if (text == "none") return 0;
  absl::string_view number = text;
  uint64_t step = 0;
  if (absl::ConsumePrefix(&number, "sample:") &&
      absl::SimpleAtoi(number, &step) && step >= 1 && step <= kMaxSampleStep) {
    return step;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--check is \"", text, "\", not all, none or sample:N with N from 1 to ",
      kMaxSampleStep));
}

void RowCheck::Poison(const RowSample& sample,
                      absl::Span<std::byte> rows) const {
  if (sample.step == 0) return;
  if (sample.step == 1) {
    std::fill(rows.begin(), rows.end(), kPoison);
    return;
  }
  const uint64_t count = rows.size() / row_bytes_;
  for (uint64_t row = sample.first; row < count; row += sample.step) {
    std::memset(rows.data() + row * row_bytes_, static_cast<int>(kPoison),
                row_bytes_);
  }
}

absl::StatusOr<RowCheck::Result> RowCheck::Compare(
    LayerId layer, absl::Span<const RowId> row_ids,
    absl::Span<const std::byte> rows, uint64_t offset,
    const RowSample& sample) const {
  Result result;
  if (sample.step == 0) return result;
  std::vector<std::byte> wanted(kBatchRows * row_bytes_);
  std::array<RowId, kBatchRows> ids;
  uint64_t slot = FirstAtOrAfter(sample, offset) - offset;
  while (slot < row_ids.size()) {
    const uint64_t first_slot = slot;
    size_t count = 0;
    for (; count < kBatchRows && slot < row_ids.size(); slot += sample.step) {
      ids[count++] = row_ids[slot];
    }
    ENGRAM_RETURN_IF_ERROR(
        reference_->Read(layer, absl::MakeConstSpan(ids).first(count),
                         absl::MakeSpan(wanted).first(count * row_bytes_)));
    result.compared += count;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t at = first_slot + i * sample.step;
      const auto want =
          absl::MakeConstSpan(wanted).subspan(i * row_bytes_, row_bytes_);
      const auto got = rows.subspan(at * row_bytes_, row_bytes_);
      if (std::memcmp(want.data(), got.data(), row_bytes_) == 0) continue;
      ++result.wrong;
      if (result.first.has_value()) continue;
      result.first = Describe(layer, ids[i], at, row_ids.size(), want, got);
    }
  }
  return result;
}

LoadMismatch RowCheck::Describe(LayerId layer, RowId row, uint64_t slot,
                                uint64_t rows,
                                absl::Span<const std::byte> wanted,
                                absl::Span<const std::byte> got) const {
  const size_t byte =
      std::mismatch(wanted.begin(), wanted.end(), got.begin()).first -
      wanted.begin();
  LoadMismatch mismatch = {.version = reference_->version(),
                           .layer = layer,
                           .item = row,
                           .slot = slot,
                           .byte = byte,
                           .wanted = static_cast<uint8_t>(wanted[byte]),
                           .got = static_cast<uint8_t>(got[byte])};
  const bool unwritten = std::all_of(got.begin(), got.end(),
                                     [](std::byte b) { return b == kPoison; });
  mismatch.text = absl::StrCat(
      "wrong row: table ", mismatch.version, ", layer ", ToInt(layer), ", row ",
      row, " in slot ", slot, " of ", rows, ": byte ", byte, " is 0x",
      absl::Hex(mismatch.got, absl::kZeroPad2), ", not 0x",
      absl::Hex(mismatch.wanted, absl::kZeroPad2),
      unwritten ? " (nothing was written to the slot)" : "");
  return mismatch;
}

}  // namespace engram::ctl
