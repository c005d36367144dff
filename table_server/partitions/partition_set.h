#ifndef ENGRAM_TABLE_SERVER_PARTITIONS_PARTITION_SET_H_
#define ENGRAM_TABLE_SERVER_PARTITIONS_PARTITION_SET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/base/mutex.h"
#include "core/model/manifest.h"

namespace engram {

// Which partitions this server holds, verified, and whether it is about to
// leave: all that it tells the world about itself. Partitions are only added;
// they stay until the server ends.
//
// Thread safety: all methods may be called concurrently.
class PartitionSet {
 public:
  // Told of each change, on the thread that made it and with no lock held.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnPartitionsChanged() = 0;  // must not block
  };

  struct LayerBitmap {
    LayerId layer;
    uint32_t partition_count = 0;
    std::string bitmap;  // bit p % 8 of byte p / 8 is partition p
  };

  // Everything at one moment. `position` is where ChangesSince goes on.
  struct Snapshot {
    std::vector<LayerBitmap> layers;
    bool draining = false;
    uint64_t position = 0;
  };

  struct Changes {
    std::vector<PartitionRef> added;  // in the order they came
    bool draining = false;
    uint64_t position = 0;
  };

  explicit PartitionSet(const Manifest& manifest);

  // Wait-free. Whoever sees true also sees every byte that was written before
  // Add. REQUIRES: both are in the manifest.
  bool Holds(size_t layer_index, uint32_t partition) const {
    const std::atomic<uint64_t>& word =
        layers_[layer_index].held[partition / 64];
    return (word.load(std::memory_order_acquire) >> (partition % 64) & 1) != 0;
  }

  // Publishes a verified partition. Adding it again changes nothing.
  void Add(size_t layer_index, PartitionId partition);
  void AnnounceDraining();

  uint32_t held_count(size_t layer_index) const;

  Snapshot TakeSnapshot() const;
  // What changed after `position`, in one piece however much it is.
  Changes ChangesSince(uint64_t position) const;

  // Listeners are the caller's to bound.
  void AddListener(std::shared_ptr<Listener> listener);
  void RemoveListener(const Listener* listener);

 private:
  struct Layer {
    LayerId layer_id;
    uint32_t partition_count = 0;
    std::vector<std::atomic<uint64_t>> held;
    std::atomic<uint32_t> held_count{0};
  };

  void Notify();

  // The vector and its sizes are constant; the words are self-synchronised.
  std::vector<Layer> layers_;

  mutable Mutex mutex_;
  std::vector<PartitionRef> history_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<Listener>> listeners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_PARTITIONS_PARTITION_SET_H_
