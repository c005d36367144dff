#include "engram_client/ctl/chunks.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace engram::ctl {

absl::StatusOr<std::vector<Chunk>> ParseChunks(absl::string_view text,
                                               uint64_t length) {
  if (text.empty()) return std::vector<Chunk>{{0, length}};
  std::vector<Chunk> chunks;
  uint64_t sum = 0;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    uint64_t count = 0;
    if (!absl::SimpleAtoi(item, &count) || count == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--chunks has \"", item,
                       "\", which is not a number of tokens of 1 or more"));
    }
    // Compared with what is left, so that no sum can overflow.
    if (count > length - sum) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--chunks ", text, " is longer than the sequences, which have ",
          length, " tokens"));
    }
    chunks.push_back({sum, count});
    sum += count;
  }
  if (sum != length) {
    return absl::InvalidArgumentError(
        absl::StrCat("--chunks ", text, " makes ", sum,
                     " tokens, but the sequences have ", length));
  }
  return chunks;
}

}  // namespace engram::ctl
