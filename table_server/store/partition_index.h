#ifndef ENGRAM_TABLE_SERVER_STORE_PARTITION_INDEX_H_
#define ENGRAM_TABLE_SERVER_STORE_PARTITION_INDEX_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/model/manifest.h"

namespace engram {

// Which partitions of a manifest are there, and which are being changed.
// Thread safety: all methods may be called concurrently.
class StoredIndex {
 public:
  // How a partition was at one moment: another one after each change.
  using Seen = uint32_t;

  explicit StoredIndex(const Manifest& manifest) {
    for (size_t i = 0; i < manifest.layers().size(); ++i) {
      layer_ids_.push_back(manifest.layers()[i].layer_id);
      layers_.emplace_back(manifest.partition_count(i));
    }
  }

  // Of a partition that the manifest does not have: no.
  bool Has(size_t layer_index, PartitionId partition) const {
    return layer_index < layers_.size() &&
           ToInt(partition) < layers_[layer_index].size() &&
           (Look(layer_index, partition) & kThere) != 0;
  }

  // What follows REQUIRES that the manifest has it.

  Seen Look(size_t layer_index, PartitionId partition) const {
    return layers_[layer_index][ToInt(partition)].load(
        std::memory_order_acquire);
  }

  // It stays as it is until EndChange. False: another change is under way.
  bool BeginChange(size_t layer_index, PartitionId partition) {
    return (At(layer_index, partition).fetch_or(kChanging) & kChanging) == 0;
  }
  // As BeginChange, but it is not there any more. True for one of all who saw
  // the same: false: it was not there, or was changed or dropped since.
  bool BeginDrop(size_t layer_index, PartitionId partition, Seen seen) {
    if ((seen & kThere) == 0 || (seen & kChanging) != 0) return false;
    const Seen dropped = (seen & ~kThere) | kChanging;
    if (!At(layer_index, partition).compare_exchange_strong(seen, dropped)) {
      return false;
    }
    count_.fetch_sub(1);
    return true;
  }
  // REQUIRES: a change was begun.
  void EndChange(size_t layer_index, PartitionId partition, bool there) {
    std::atomic<Seen>& state = At(layer_index, partition);
    const Seen before = state.load();
    state.store(((before | kFlags) + 1) | (there ? kThere : 0));
    const bool was_there = (before & kThere) != 0;
    if (there && !was_there) count_.fetch_add(1);
    if (!there && was_there) count_.fetch_sub(1);
  }

  // REQUIRES: nobody else changes this partition.
  void SetThere(size_t layer_index, PartitionId partition) {
    BeginChange(layer_index, partition);
    EndChange(layer_index, partition, true);
  }

  std::vector<PartitionRef> List() const {
    std::vector<PartitionRef> refs;
    for (size_t i = 0; i < layers_.size(); ++i) {
      for (uint32_t p = 0; p < layers_[i].size(); ++p) {
        if (Has(i, PartitionId{p})) {
          refs.push_back({layer_ids_[i], PartitionId{p}});
        }
      }
    }
    return refs;
  }

  uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  static constexpr Seen kThere = 1;
  static constexpr Seen kChanging = 2;
  static constexpr Seen kFlags = kThere | kChanging;  // the rest counts changes

  std::atomic<Seen>& At(size_t layer_index, PartitionId partition) {
    return layers_.at(layer_index).at(ToInt(partition));
  }

  std::vector<LayerId> layer_ids_;
  std::vector<std::vector<std::atomic<Seen>>> layers_;
  std::atomic<uint64_t> count_{0};
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_PARTITION_INDEX_H_
