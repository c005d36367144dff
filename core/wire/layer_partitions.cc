#include "core/wire/layer_partitions.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

size_t BitmapBytes(uint32_t partition_count) {
  return partition_count / 8 + (partition_count % 8 > 0 ? 1 : 0);
}

// What a bitmap of `count` bits must not have set in its last byte.
uint8_t BitsBeyond(uint32_t count) {
  return count % 8 == 0 ? 0 : static_cast<uint8_t>(0xFF << count % 8);
}

absl::Status CheckEntry(const v1::LayerPartitions& entry,
                        absl::Span<const LayerPartitionCount> layers) {
  const auto found =
      std::find_if(layers.begin(), layers.end(), [&](const auto& layer) {
        return ToInt(layer.first) == entry.layer_id();
      });
  if (found == layers.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "partitions of layer ", entry.layer_id(), ", which has no table here"));
  }
  const uint32_t count = found->second;
  if (entry.partition_count() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", entry.layer_id(), " is said to have ",
                     entry.partition_count(), " partitions, it has ", count));
  }
  const std::string& bitmap = entry.bitmap();
  if (bitmap.size() != BitmapBytes(count)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the bitmap of layer ", entry.layer_id(), " has ", bitmap.size(),
        " bytes, its ", count, " partitions take ", BitmapBytes(count)));
  }
  if (!bitmap.empty() &&
      (static_cast<uint8_t>(bitmap.back()) & BitsBeyond(count)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bitmap of layer ", entry.layer_id(),
                     " has bits beyond its ", count, " partitions"));
  }
  return absl::OkStatus();
}

void AppendPartitions(const v1::LayerPartitions& entry,
                      std::vector<PartitionRef>& out) {
  for (size_t byte = 0; byte < entry.bitmap().size(); ++byte) {
    const auto bits = static_cast<uint8_t>(entry.bitmap()[byte]);
    if (bits == 0) continue;
    for (uint32_t bit = 0; bit < 8; ++bit) {
      if ((bits >> bit & 1) == 0) continue;
      const auto partition = static_cast<uint32_t>(byte * 8 + bit);
      out.push_back({LayerId{entry.layer_id()}, PartitionId{partition}});
    }
  }
}

}  // namespace

LayerPartitionsList ToLayerPartitions(
    absl::Span<const PartitionRef> partitions,
    absl::Span<const LayerPartitionCount> layers) {
  std::vector<std::string> bitmaps(layers.size());
  for (const PartitionRef& ref : partitions) {
    const auto found = std::find_if(
        layers.begin(), layers.end(),
        [&](const auto& layer) { return layer.first == ref.layer; });
    ENGRAM_CHECK(found != layers.end());
    const uint32_t partition = ToInt(ref.partition);
    ENGRAM_CHECK(partition < found->second);
    std::string& bitmap = bitmaps[static_cast<size_t>(found - layers.begin())];
    if (bitmap.empty()) bitmap.resize(BitmapBytes(found->second));
    bitmap[partition / 8] =
        static_cast<char>(bitmap[partition / 8] | 1 << partition % 8);
  }
  LayerPartitionsList list;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (bitmaps[i].empty()) continue;
    v1::LayerPartitions* const entry = list.Add();
    entry->set_layer_id(ToInt(layers[i].first));
    entry->set_partition_count(layers[i].second);
    entry->set_bitmap(std::move(bitmaps[i]));
  }
  return list;
}

absl::StatusOr<std::vector<PartitionRef>> FromLayerPartitions(
    const LayerPartitionsList& list,
    absl::Span<const LayerPartitionCount> layers) {
  std::vector<const v1::LayerPartitions*> entries;
  for (const v1::LayerPartitions& entry : list) {
    ENGRAM_RETURN_IF_ERROR(CheckEntry(entry, layers));
    // As many as there are layers, at most: more are one that stands twice.
    for (const v1::LayerPartitions* other : entries) {
      if (other->layer_id() != entry.layer_id()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "layer ", entry.layer_id(), " has two bitmaps, one is wanted"));
    }
    entries.push_back(&entry);
  }
  std::sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) {
    return a->layer_id() < b->layer_id();
  });
  std::vector<PartitionRef> partitions;
  for (const v1::LayerPartitions* entry : entries) {
    AppendPartitions(*entry, partitions);
  }
  return partitions;
}

}  // namespace engram
