#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_SIZES_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_SIZES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace engram::ctl {

// One kind of call in a mix: rows of each layer or tokens, and how often it
// comes beside the others.
struct LoadSize {
  uint64_t size = 0;
  uint64_t weight = 1;

  friend bool operator==(const LoadSize&, const LoadSize&) = default;
};

inline constexpr size_t kMaxLoadSizes = 16;
inline constexpr uint64_t kMaxLoadWeight = 1'000'000;

// "24", or SIZExWEIGHT separated by commas: "24x70,1536x25,49152x5".
// INVALID_ARGUMENT names `flag`, the value and the limit: an item of another
// form, a size that is 0, above `max_size` or there twice, a weight of 0 or
// above kMaxLoadWeight, more than kMaxLoadSizes items.
absl::StatusOr<std::vector<LoadSize>> ParseLoadSizes(absl::string_view flag,
                                                     absl::string_view text,
                                                     uint64_t max_size);

// The greatest size of the mix.
uint64_t LargestSize(const std::vector<LoadSize>& sizes);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_SIZES_H_
