#ifndef ENGRAM_CORE_HTTP_BEARER_TOKEN_H_
#define ENGRAM_CORE_HTTP_BEARER_TOKEN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"

namespace engram {

// A bearer token in a file, read again when the file has changed: tokens are
// rotated. Nothing here logs it or puts it into a message.
//
// Thread safety: all methods may be called concurrently.
class BearerToken {
 public:
  // INVALID_ARGUMENT: not one word of visible ASCII; else the errors of
  // ReadFile. A file that everybody may read is warned of: Kubernetes mounts
  // secrets that way.
  static absl::StatusOr<std::unique_ptr<BearerToken>> Open(
      const std::string& path);

  // What the file says now; what it said before where it cannot be read.
  std::string Current();

 private:
  // Tells one content of a file from the next, also by a swapped link.
  struct Stamp {
    uint64_t device = 0;
    uint64_t inode = 0;
    uint64_t size = 0;
    int64_t changed_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };

  explicit BearerToken(std::string path) : path_(std::move(path)) {}

  static Stamp StampOf(const std::string& path);

  const std::string path_;
  Mutex mutex_;
  Stamp stamp_ ABSL_GUARDED_BY(mutex_);
  std::string token_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_CORE_HTTP_BEARER_TOKEN_H_
