#ifndef ENGRAM_TABLE_SERVER_LOADING_DIRECT_COLUMN_H_
#define ENGRAM_TABLE_SERVER_LOADING_DIRECT_COLUMN_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/model/safetensors.h"
#include "table_server/store/store_files.h"

namespace engram {

// A tensor that is read once, from the disk and past the page cache: what would
// stay there is of no use to a server that keeps the rows itself, and mapping
// it, page by page, costs more than reading it.
//
// Immutable. Thread safety: all methods may be called concurrently.
class DirectColumn {
 public:
  // Of a buffer, beyond what is to be read.
  static constexpr size_t kSlackBytes = 2 * kDirectAlignment;

  // Nothing: the file system has no direct reads, or the file cannot be opened
  // again. `files` must outlive it.
  static std::unique_ptr<DirectColumn> Open(const TensorView& tensor,
                                            StoreFiles& files);
  // Whether most of it is in the page cache already, where a mapping is faster.
  // False where the file system does not say.
  static bool IsCached(const TensorView& tensor);

  // Bytes [at, at + size_bytes) of the tensor, somewhere in `buffer`.
  // DATA_LOSS: the file was cut; otherwise what the system says. REQUIRES: they
  // are in the tensor; `buffer` is aligned and has kSlackBytes more.
  absl::StatusOr<absl::Span<const std::byte>> Read(
      uint64_t at, size_t size_bytes, absl::Span<std::byte> buffer) const;

 private:
  DirectColumn(const TensorView& tensor, std::unique_ptr<StoreFile> file);

  const TensorView tensor_;
  const uint64_t offset_;  // of the tensor in its file
  const std::unique_ptr<StoreFile> file_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_DIRECT_COLUMN_H_
