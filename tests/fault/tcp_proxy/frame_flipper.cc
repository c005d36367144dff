#include "tests/fault/tcp_proxy/frame_flipper.h"

#include <algorithm>

namespace engram::fault {
namespace {

constexpr uint8_t kDataFrame = 0;

}  // namespace

void FrameFlipper::BeginFrame(double share, std::mt19937_64& random) {
  frame_bytes_ =
      size_t{header_[0]} << 16 | size_t{header_[1]} << 8 | header_[2];
  frame_at_ = 0;
  flip_at_ = 0;
  if (header_[3] != kDataFrame || frame_bytes_ < kLeastFrameBytes) return;
  if (!std::bernoulli_distribution(share)(random)) return;
  flip_at_ = std::uniform_int_distribution<size_t>(kSparedBytes,
                                                   frame_bytes_ - 1)(random);
}

size_t FrameFlipper::Pass(absl::Span<char> bytes, double share,
                          std::mt19937_64& random) {
  size_t flips = 0;
  while (!bytes.empty()) {
    if (header_size_ < kHeaderBytes) {
      header_[header_size_++] = static_cast<uint8_t>(bytes.front());
      bytes.remove_prefix(1);
      if (header_size_ == kHeaderBytes) BeginFrame(share, random);
    } else {
      const size_t size = std::min(bytes.size(), frame_bytes_ - frame_at_);
      if (flip_at_ >= frame_at_ && flip_at_ - frame_at_ < size &&
          flip_at_ > 0) {
        char& turned = bytes[flip_at_ - frame_at_];
        turned = static_cast<char>(turned ^ (1 << random() % 8));
        ++flips;
      }
      frame_at_ += size;
      bytes.remove_prefix(size);
    }
    if (header_size_ == kHeaderBytes && frame_at_ == frame_bytes_) {
      header_size_ = 0;
    }
  }
  return flips;
}

}  // namespace engram::fault
