#include "table_server/partitions/partition_set.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace engram {
namespace {

// In a word of `held`.
uint64_t BitOf(PartitionId partition) {
  return uint64_t{1} << (ToInt(partition) % 64);
}

}  // namespace

PartitionSet::PartitionSet(const Manifest& manifest)
    : layers_(manifest.layers().size()),
      announcements_(manifest.layers().size()) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    layer.layer_id = manifest.layers()[i].layer_id;
    layer.partition_count = manifest.partition_count(i);
    layer.held =
        std::vector<std::atomic<uint64_t>>((layer.partition_count + 63) / 64);
    announcements_[i].resize(layer.partition_count);
  }
}

void PartitionSet::Add(size_t layer_index, PartitionId partition) {
  Layer& layer = Checked(layer_index, partition);
  const uint64_t bit = BitOf(partition);
  {
    MutexLock lock(&mutex_);
    const uint64_t before =
        layer.held[ToInt(partition) / 64].fetch_or(bit);  // seq_cst
    if ((before & bit) == 0) {
      layer.held_count.fetch_add(1, std::memory_order_relaxed);
    }
    if (!Announce(layer_index, partition, true)) return;
  }
  Notify();
}

void PartitionSet::Withdraw(size_t layer_index, PartitionId partition) {
  Checked(layer_index, partition);
  {
    MutexLock lock(&mutex_);
    if (!Announce(layer_index, partition, false)) return;
  }
  Notify();
}

LeaseEpochs::Mark PartitionSet::Drop(size_t layer_index,
                                     PartitionId partition) {
  Layer& layer = Checked(layer_index, partition);
  const uint64_t bit = BitOf(partition);
  {
    MutexLock lock(&mutex_);
    ENGRAM_CHECK(!announcements_[layer_index][ToInt(partition)].announced);
    const uint64_t before =
        layer.held[ToInt(partition) / 64].fetch_and(~bit);  // seq_cst
    ENGRAM_CHECK((before & bit) != 0);
    layer.held_count.fetch_sub(1, std::memory_order_relaxed);
  }
  return leases_.TakeMark();
}

PartitionSet::Layer& PartitionSet::Checked(size_t layer_index,
                                           PartitionId partition) {
  ENGRAM_CHECK(layer_index < layers_.size());
  ENGRAM_CHECK(ToInt(partition) < layers_[layer_index].partition_count);
  return layers_[layer_index];
}

bool PartitionSet::Announce(size_t layer_index, PartitionId partition,
                            bool announced) {
  Announcement& entry = announcements_[layer_index][ToInt(partition)];
  if (entry.announced == announced) return false;
  last_changes_.erase(entry.changed_at);
  entry = {announced, ++position_};
  last_changes_.emplace_hint(last_changes_.end(), position_,
                             Place{layer_index, ToInt(partition)});
  return true;
}

void PartitionSet::AnnounceDraining() {
  {
    MutexLock lock(&mutex_);
    if (draining_) return;
    draining_ = true;
  }
  Notify();
}

uint32_t PartitionSet::held_count(size_t layer_index) const {
  return layers_[layer_index].held_count.load(std::memory_order_relaxed);
}

PartitionSet::Snapshot PartitionSet::TakeSnapshot() const {
  Snapshot snapshot;
  MutexLock lock(&mutex_);
  for (size_t i = 0; i < layers_.size(); ++i) {
    LayerBitmap& entry = snapshot.layers.emplace_back();
    entry.layer = layers_[i].layer_id;
    entry.partition_count = layers_[i].partition_count;
    entry.bitmap.resize((layers_[i].partition_count + 7) / 8);
    for (uint32_t p = 0; p < entry.partition_count; ++p) {
      if (!announcements_[i][p].announced) continue;
      entry.bitmap[p / 8] |= static_cast<char>(1 << (p % 8));
    }
  }
  snapshot.draining = draining_;
  snapshot.position = position_;
  return snapshot;
}

PartitionSet::Changes PartitionSet::ChangesSince(uint64_t position) const {
  Changes changes;
  MutexLock lock(&mutex_);
  ENGRAM_CHECK(position <= position_);
  for (auto it = last_changes_.upper_bound(position); it != last_changes_.end();
       ++it) {
    const Place& place = it->second;
    const bool announced =
        announcements_[place.layer_index][place.partition].announced;
    (announced ? changes.added : changes.removed)
        .push_back({layers_[place.layer_index].layer_id,
                    PartitionId{place.partition}});
  }
  changes.draining = draining_;
  changes.position = position_;
  return changes;
}

void PartitionSet::AddListener(std::shared_ptr<Listener> listener) {
  MutexLock lock(&mutex_);
  listeners_.push_back(std::move(listener));
}

void PartitionSet::RemoveListener(const Listener* listener) {
  std::shared_ptr<Listener> removed;  // destroyed after the lock is gone
  MutexLock lock(&mutex_);
  const auto found = std::find_if(
      listeners_.begin(), listeners_.end(),
      [&](const auto& candidate) { return candidate.get() == listener; });
  if (found == listeners_.end()) return;
  removed = std::move(*found);
  listeners_.erase(found);
}

void PartitionSet::Notify() {
  std::vector<std::shared_ptr<Listener>> listeners;
  {
    MutexLock lock(&mutex_);
    listeners = listeners_;
  }
  for (const auto& listener : listeners) listener->OnPartitionsChanged();
}

}  // namespace engram
