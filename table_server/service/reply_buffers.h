#ifndef ENGRAM_TABLE_SERVER_SERVICE_REPLY_BUFFERS_H_
#define ENGRAM_TABLE_SERVER_SERVICE_REPLY_BUFFERS_H_

#include <grpcpp/support/slice.h>

#include <cstddef>
#include <memory>

#include "absl/types/span.h"
#include "core/wire/piece_writer.h"

namespace engram {

class ReplyBuffers;

// Memory that rows are gathered into and that gRPC then sends as it is, with
// room for the framing around the rows. Move-only.
class ReplyBuffer {
 public:
  ReplyBuffer(ReplyBuffer&&) = default;
  ReplyBuffer& operator=(ReplyBuffer&&) = default;

  absl::Span<std::byte> head() { return {data_, kHeadRoomBytes}; }
  absl::Span<std::byte> rows() { return {data_ + kHeadRoomBytes, rows_bytes_}; }
  absl::Span<std::byte> tail() {
    return {data_ + kHeadRoomBytes + rows_bytes_, kTailRoomBytes};
  }

  // The rows with the framing that was written around them. The memory goes
  // back to where it came from when the last reference to the slice has ended.
  grpc::Slice Release(const Framing& framing) &&;

 private:
  friend class ReplyBuffers;
  ReplyBuffer(grpc::Slice slice, size_t rows_bytes);

  grpc::Slice slice_;
  std::byte* data_;
  size_t rows_bytes_;
};

// Buffers of one size in huge pages, taken again as soon as they were sent, so
// that they stay in caches and TLB; small and surplus ones are of the heap.
//
// Thread safety: all methods may be called concurrently. Buffers may outlive
// this object.
class ReplyBuffers {
 public:
  struct Options {
    size_t rows_bytes = 0;        // the most that one buffer has to hold
    size_t max_pooled_bytes = 0;  // memory that is kept, never given back
  };

  explicit ReplyBuffers(const Options& options);

  // A buffer for `rows_bytes` bytes of rows. REQUIRES: at most the option.
  ReplyBuffer Take(size_t rows_bytes);

  size_t max_rows_bytes() const { return options_.rows_bytes; }
  size_t max_pooled_bytes() const { return options_.max_pooled_bytes; }
  size_t pooled_bytes() const;  // kept now, in use or not

 private:
  class Pool;

  const Options options_;
  const std::shared_ptr<Pool> pool_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_REPLY_BUFFERS_H_
