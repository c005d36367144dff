#ifndef ENGRAM_TABLE_SERVER_PARTITIONS_PARTITION_SET_H_
#define ENGRAM_TABLE_SERVER_PARTITIONS_PARTITION_SET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/ids.h"
#include "core/base/lease_epochs.h"
#include "core/base/mutex.h"
#include "core/model/manifest.h"

namespace engram {

// Which partitions this server holds, verified, and whether it is about to
// leave: all that it tells the world about itself.
//
//          Add                  Withdraw                    Drop
//   absent ---> held, announced --------> held, for callers ----> absent
//                               <-------- that know it yet
//                                  Add
//
// Held: gathers are answered from it. Announced: watchers are told of it.
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

  // All that is announced at one moment. `position` is where ChangesSince goes
  // on.
  struct Snapshot {
    std::vector<LayerBitmap> layers;
    bool draining = false;
    uint64_t position = 0;
  };

  // What is announced, and what is not, of the partitions that changed: none
  // is in both. Each in the order of the last changes.
  struct Changes {
    std::vector<PartitionRef> added;
    std::vector<PartitionRef> removed;
    bool draining = false;
    uint64_t position = 0;

    bool empty() const { return added.empty() && removed.empty(); }
  };

  explicit PartitionSet(const Manifest& manifest);

  // Under a lease, a partition that Holds says is held keeps its bytes: they
  // may be read until the lease ends. Wait-free.
  LeaseEpochs::Lease TakeLease() const { return leases_.Take(); }

  // Wait-free. Whoever sees true also sees every byte that was written before
  // Add. seq_cst, which costs nothing for a load on x86: what leases ask for.
  // REQUIRES: both are in the manifest.
  bool Holds(size_t layer_index, uint32_t partition) const {
    const std::atomic<uint64_t>& word =
        layers_[layer_index].held[partition / 64];
    return (word.load(std::memory_order_seq_cst) >> (partition % 64) & 1) != 0;
  }

  // Publishes a verified partition, or announces again what was withdrawn.
  // What is announced already stays as it is.
  void Add(size_t layer_index, PartitionId partition);
  // Tells watchers that it is gone; gathers are answered all the same. What is
  // not announced stays as it is.
  void Withdraw(size_t layer_index, PartitionId partition);
  // Answers no more. Its memory may be given back once LeasesEnded says so.
  // REQUIRES: withdrawn, not dropped.
  LeaseEpochs::Mark Drop(size_t layer_index, PartitionId partition);

  // Whether every lease from before `mark` has ended. Does not wait.
  bool LeasesEnded(LeaseEpochs::Mark mark) { return leases_.Ended(mark); }
  // Waits until then; false: not by `deadline`.
  bool WaitUntilLeasesEnded(LeaseEpochs::Mark mark, absl::Time deadline) {
    return leases_.WaitUntilEnded(mark, deadline);
  }

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
    std::vector<std::atomic<uint64_t>> held;  // written under mutex_
    std::atomic<uint32_t> held_count{0};
  };
  // What watchers know of a partition.
  struct Announcement {
    bool announced = false;
    uint64_t changed_at = 0;  // position of the last change; 0: none
  };
  struct Place {
    size_t layer_index;
    uint32_t partition;
  };

  Layer& Checked(size_t layer_index, PartitionId partition);
  // True: it was the other way before.
  bool Announce(size_t layer_index, PartitionId partition, bool announced)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Notify();

  // The vector and its sizes are constant; the words are self-synchronised.
  std::vector<Layer> layers_;
  LeaseEpochs leases_;

  mutable Mutex mutex_;
  std::vector<std::vector<Announcement>> announcements_
      ABSL_GUARDED_BY(mutex_);  // [layer][partition]
  // Partitions by the position of their last change: never more entries than
  // partitions, however long the server runs.
  std::map<uint64_t, Place> last_changes_ ABSL_GUARDED_BY(mutex_);
  uint64_t position_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<Listener>> listeners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_PARTITIONS_PARTITION_SET_H_
