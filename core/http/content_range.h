#ifndef ENGRAM_CORE_HTTP_CONTENT_RANGE_H_
#define ENGRAM_CORE_HTTP_CONTENT_RANGE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace engram {

// Bytes [begin, end) of a file.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t size() const { return end - begin; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

struct ContentRange {
  ByteRange range;  // never empty, within the file
  uint64_t file_bytes = 0;

  friend bool operator==(const ContentRange&, const ContentRange&) = default;
};

// The Content-Range of a 206: "bytes 0-7/100". INVALID_ARGUMENT: anything else,
// also one that does not tell the file's size.
absl::StatusOr<ContentRange> ParseContentRange(absl::string_view text);

}  // namespace engram

#endif  // ENGRAM_CORE_HTTP_CONTENT_RANGE_H_
