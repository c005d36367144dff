#ifndef ENGRAM_ENGRAM_CLIENT_CTL_CHUNKS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_CHUNKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace engram::ctl {

// Positions [start, start + count) of a sequence.
struct Chunk {
  uint64_t start = 0;
  uint64_t count = 0;

  friend bool operator==(const Chunk&, const Chunk&) = default;
};

// "5,1,10" as chunks that follow one another over `length` positions; empty
// gives one chunk. INVALID_ARGUMENT: not numbers, a chunk of 0 tokens, or a
// sum other than `length`.
absl::StatusOr<std::vector<Chunk>> ParseChunks(absl::string_view text,
                                               uint64_t length);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_CHUNKS_H_
