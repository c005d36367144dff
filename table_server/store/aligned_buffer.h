#ifndef ENGRAM_TABLE_SERVER_STORE_ALIGNED_BUFFER_H_
#define ENGRAM_TABLE_SERVER_STORE_ALIGNED_BUFFER_H_

#include <cstddef>
#include <memory>
#include <new>

#include "absl/types/span.h"
#include "table_server/store/store_files.h"

namespace engram {

// Memory for direct reads and writes, its contents unspecified.
class AlignedBuffer {
 public:
  explicit AlignedBuffer(size_t size_bytes)
      : data_(static_cast<std::byte*>(
            ::operator new (size_bytes, std::align_val_t{kDirectAlignment}))),
        size_bytes_(size_bytes) {}

  absl::Span<std::byte> bytes() { return {data_.get(), size_bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const {
      ::operator delete (data, std::align_val_t{kDirectAlignment});
    }
  };

  std::unique_ptr<std::byte[], Free> data_;
  size_t size_bytes_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_ALIGNED_BUFFER_H_
