#include "table_server/partitions/partition_set.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace engram {

PartitionSet::PartitionSet(const Manifest& manifest)
    : layers_(manifest.layers().size()) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    layer.layer_id = manifest.layers()[i].layer_id;
    layer.partition_count = manifest.partition_count(i);
    layer.held =
        std::vector<std::atomic<uint64_t>>((layer.partition_count + 63) / 64);
  }
}

void PartitionSet::Add(size_t layer_index, PartitionId partition) {
  ENGRAM_CHECK(layer_index < layers_.size());
  Layer& layer = layers_[layer_index];
  const uint32_t index = ToInt(partition);
  ENGRAM_CHECK(index < layer.partition_count);
  {
    MutexLock lock(&mutex_);
    const uint64_t bit = uint64_t{1} << (index % 64);
    const uint64_t before =
        layer.held[index / 64].fetch_or(bit, std::memory_order_acq_rel);
    if ((before & bit) != 0) return;
    layer.held_count.fetch_add(1, std::memory_order_relaxed);
    history_.push_back({layer.layer_id, partition});
  }
  Notify();
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
  for (const Layer& layer : layers_) {
    LayerBitmap& entry = snapshot.layers.emplace_back();
    entry.layer = layer.layer_id;
    entry.partition_count = layer.partition_count;
    entry.bitmap.resize((layer.partition_count + 7) / 8);
    for (size_t byte = 0; byte < entry.bitmap.size(); ++byte) {
      const uint64_t word =
          layer.held[byte / 8].load(std::memory_order_relaxed);
      entry.bitmap[byte] = static_cast<char>(word >> (byte % 8 * 8) & 0xFF);
    }
  }
  snapshot.draining = draining_;
  snapshot.position = history_.size();
  return snapshot;
}

PartitionSet::Changes PartitionSet::ChangesSince(uint64_t position) const {
  Changes changes;
  MutexLock lock(&mutex_);
  ENGRAM_CHECK(position <= history_.size());
  changes.added.assign(history_.begin() + static_cast<ptrdiff_t>(position),
                       history_.end());
  changes.draining = draining_;
  changes.position = history_.size();
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
