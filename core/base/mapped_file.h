#ifndef ENGRAM_CORE_BASE_MAPPED_FILE_H_
#define ENGRAM_CORE_BASE_MAPPED_FILE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace engram {

// A file mapped read-only and shared. Immutable; unmapped with the last
// reference.
//
// Thread safety: all methods may be called concurrently.
class MappedFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED, or INVALID_ARGUMENT (not a regular file).
  // The message names the path.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(
      const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // The mapping. Somebody may truncate the file while it is mapped, and then
  // touching it raises SIGBUS: read it only inside Guarded.
  absl::Span<const std::byte> bytes() const { return {data_, size_bytes_}; }
  const std::string& path() const { return path_; }

  // Runs `read`; when it touches pages of a mapping that no longer have a
  // file behind them, abandons it and returns DATA_LOSS instead of letting the
  // process die.
  //
  // `read` is left by longjmp: it may only read mapped bytes and write memory
  // that outlives it. No locks, no allocation, nothing with a destructor.
  absl::Status Guarded(absl::FunctionRef<void()> read) const;

 private:
  MappedFile(std::string path, const std::byte* data, size_t size_bytes)
      : path_(std::move(path)), data_(data), size_bytes_(size_bytes) {}

  const std::string path_;
  const std::byte* const data_;
  const size_t size_bytes_;
};

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_MAPPED_FILE_H_
