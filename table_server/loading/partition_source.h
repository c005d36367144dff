#ifndef ENGRAM_TABLE_SERVER_LOADING_PARTITION_SOURCE_H_
#define ENGRAM_TABLE_SERVER_LOADING_PARTITION_SOURCE_H_

#include <atomic>
#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/ids.h"

namespace engram {

// Where a partition's packed rows can be had from. What it gives is not
// trusted: whoever asks compares it with the manifest.
//
// Thread safety: all methods may be called concurrently.
class PartitionSource {
 public:
  virtual ~PartitionSource() = default;

  // For messages: "/models/v4.1", "peers".
  virtual std::string description() const = 0;

  // Fills `out`, the whole partition, from its beginning on. `on_bytes` is
  // called as bytes come, with how many: it may block for a while, to slow the
  // read down, and its error ends the read. On an error `out` is unspecified.
  // NOT_FOUND: it is not to be had here now.
  virtual absl::Status Read(
      const PartitionRef& ref, absl::Span<std::byte> out,
      absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) = 0;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_PARTITION_SOURCE_H_
