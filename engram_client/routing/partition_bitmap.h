#ifndef ENGRAM_ENGRAM_CLIENT_ROUTING_PARTITION_BITMAP_H_
#define ENGRAM_ENGRAM_CLIENT_ROUTING_PARTITION_BITMAP_H_

#include <bit>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace engram {

// A set of partitions of one layer. Not synchronised.
class PartitionBitmap {
 public:
  explicit PartitionBitmap(uint32_t partition_count)
      : partition_count_(partition_count),
        words_((partition_count + 63) / 64) {}

  // The bytes of engram.v1.LayerPartitions.bitmap. INVALID_ARGUMENT: not
  // (partition_count + 7) / 8 of them, or a bit past the last partition.
  static absl::StatusOr<PartitionBitmap> FromBytes(absl::string_view bytes,
                                                   uint32_t partition_count);

  uint32_t partition_count() const { return partition_count_; }
  // REQUIRES for these: partition < partition_count().
  void Set(uint32_t partition) {
    words_[partition / 64] |= uint64_t{1} << partition % 64;
  }
  void Clear(uint32_t partition) {
    words_[partition / 64] &= ~(uint64_t{1} << partition % 64);
  }
  bool Test(uint32_t partition) const {
    return (words_[partition / 64] >> partition % 64 & 1) != 0;
  }

  uint64_t Count() const;

  // Calls visit(partition) for each partition in the set, ascending.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (uint32_t i = 0; i < words_.size(); ++i) {
      for (uint64_t word = words_[i]; word != 0; word &= word - 1) {
        visit(i * 64 + static_cast<uint32_t>(std::countr_zero(word)));
      }
    }
  }

 private:
  uint32_t partition_count_;
  std::vector<uint64_t> words_;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_ROUTING_PARTITION_BITMAP_H_
