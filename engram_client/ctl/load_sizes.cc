#include "engram_client/ctl/load_sizes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"

namespace engram::ctl {
namespace {

// Digits only: SimpleAtoi alone would take signs and spaces.
bool ParseNumber(absl::string_view text, uint64_t* number) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(text, number);
}

absl::Status CheckNumber(absl::string_view flag, absl::string_view item,
                         absl::string_view what, uint64_t number,
                         uint64_t max) {
  if (number >= 1 && number <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, " has \"", item,
                                                 "\": its ", what, " is ",
                                                 number, ", not 1 to ", max));
}

absl::StatusOr<LoadSize> ParseItem(absl::string_view flag,
                                   absl::string_view item, uint64_t max_size) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(item, absl::MaxSplits('x', 1));
  const bool weighted = absl::StrContains(item, 'x');
  LoadSize size;
  if (!ParseNumber(parts.first, &size.size) ||
      (weighted && !ParseNumber(parts.second, &size.weight))) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, " has \"", item, "\", which is neither SIZE nor SIZExWEIGHT"));
  }
  ENGRAM_RETURN_IF_ERROR(CheckNumber(flag, item, "size", size.size, max_size));
  ENGRAM_RETURN_IF_ERROR(
      CheckNumber(flag, item, "weight", size.weight, kMaxLoadWeight));
  return size;
}

}  // namespace

absl::StatusOr<std::vector<LoadSize>> ParseLoadSizes(absl::string_view flag,
                                                     absl::string_view text,
                                                     uint64_t max_size) {
  std::vector<LoadSize> sizes;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    ENGRAM_ASSIGN_OR_RETURN(const LoadSize size,
                            ParseItem(flag, item, max_size));
    for (const LoadSize& earlier : sizes) {
      if (earlier.size != size.size) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " has the size ", size.size, " twice"));
    }
    sizes.push_back(size);
  }
  if (sizes.size() > kMaxLoadSizes) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, " has ", sizes.size(), " sizes, the limit is ", kMaxLoadSizes));
  }
  return sizes;
}

uint64_t LargestSize(const std::vector<LoadSize>& sizes) {
  uint64_t largest = 0;
  for (const LoadSize& size : sizes) largest = std::max(largest, size.size);
  return largest;
}

}  // namespace engram::ctl
