#ifndef ENGRAM_TESTS_FAULT_TCP_PROXY_FRAME_FLIPPER_H_
#define ENGRAM_TESTS_FAULT_TCP_PROXY_FRAME_FLIPPER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

#include "absl/types/span.h"

namespace engram::fault {

// Turns bits in what an HTTP/2 server says: in the payload of DATA frames, so
// that the connection stays whole and the rows do not. Follows the frames from
// the first byte of a connection on.
//
// Thread safety: none.
class FrameFlipper {
 public:
  // Frames shorter than this are left alone, and as much at the beginning of
  // each: mostly framing of gRPC and of messages, whose damage shows by itself.
  static constexpr size_t kLeastFrameBytes = 512;
  static constexpr size_t kSparedBytes = 64;

  // Goes over the next bytes of the connection. Each DATA frame that begins in
  // them has one bit turned with the chance `share`. Returns how many bits
  // were turned.
  size_t Pass(absl::Span<char> bytes, double share, std::mt19937_64& random);

 private:
  static constexpr size_t kHeaderBytes = 9;

  void BeginFrame(double share, std::mt19937_64& random);

  std::array<uint8_t, kHeaderBytes> header_{};
  size_t header_size_ = 0;
  size_t frame_bytes_ = 0;  // of the payload
  size_t frame_at_ = 0;     // what has passed of it
  size_t flip_at_ = 0;      // 0: nowhere
};

}  // namespace engram::fault

#endif  // ENGRAM_TESTS_FAULT_TCP_PROXY_FRAME_FLIPPER_H_
