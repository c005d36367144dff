#include "engram_client/routing/partition_bitmap.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace engram {

absl::StatusOr<PartitionBitmap> PartitionBitmap::FromBytes(
    absl::string_view bytes, uint32_t partition_count) {
  const uint64_t want = (uint64_t{partition_count} + 7) / 8;
  if (bytes.size() != want) {
    return absl::InvalidArgumentError(
        absl::StrCat("bitmap of ", partition_count, " partitions has ",
                     bytes.size(), " bytes, not ", want));
  }
  PartitionBitmap bitmap(partition_count);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bitmap.words_[i / 8] |= uint64_t{static_cast<uint8_t>(bytes[i])}
                            << i % 8 * 8;
  }
  if (partition_count % 64 != 0 &&
      bitmap.words_.back() >> partition_count % 64 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "bitmap has a bit past its last partition ", partition_count - 1));
  }
  return bitmap;
}

uint64_t PartitionBitmap::Count() const {
  uint64_t count = 0;
  for (const uint64_t word : words_) count += std::popcount(word);
  return count;
}

}  // namespace engram
