#ifndef ENGRAM_TABLE_SERVER_REBALANCE_PARTITION_INDEX_H_
#define ENGRAM_TABLE_SERVER_REBALANCE_PARTITION_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/check.h"
#include "core/base/ids.h"
#include "core/model/manifest.h"

namespace engram {

// Numbers a table's partitions 0 .. size() - 1 in the order of their refs, so
// that what is known of each can lie in an array. Immutable.
class PartitionIndex {
 public:
  struct Place {
    size_t layer_index = 0;  // in the manifest
    PartitionRef ref;
  };

  explicit PartitionIndex(const Manifest& manifest) {
    for (size_t i = 0; i < manifest.layers().size(); ++i) {
      const LayerId id = manifest.layers()[i].layer_id;
      ENGRAM_CHECK(i == 0 || layers_.back().id < id);  // ParseConfig's promise
      layers_.push_back({id, manifest.partition_count(i), size_});
      size_ += manifest.partition_count(i);
    }
  }

  size_t size() const { return size_; }

  // None: the table has no such partition.
  std::optional<size_t> Find(const PartitionRef& ref) const {
    for (const Layer& layer : layers_) {
      if (layer.id != ref.layer) continue;
      if (ToInt(ref.partition) >= layer.partition_count) return std::nullopt;
      return layer.first + ToInt(ref.partition);
    }
    return std::nullopt;
  }

  Place At(size_t number) const {
    ENGRAM_CHECK(number < size_);
    size_t i = layers_.size() - 1;
    while (layers_[i].first > number) --i;
    const auto partition = static_cast<uint32_t>(number - layers_[i].first);
    return {i, {layers_[i].id, PartitionId{partition}}};
  }

 private:
  struct Layer {
    LayerId id;
    uint32_t partition_count = 0;
    size_t first = 0;  // number of its partition 0
  };

  std::vector<Layer> layers_;  // as in the manifest
  size_t size_ = 0;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_REBALANCE_PARTITION_INDEX_H_
