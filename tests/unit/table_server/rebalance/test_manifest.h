#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_TEST_MANIFEST_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_TEST_MANIFEST_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/membership/member.h"
#include "core/model/layout.h"
#include "core/model/manifest.h"
#include "core/model/presets.h"
#include "core/model/row_format.h"

namespace engram::test {

using Names = std::vector<std::string>;

// A synthetic table of a preset's layers.
inline Manifest MakeManifest(const std::string& preset,
                             uint64_t partition_rows) {
  const EngramConfig config = PresetConfig(preset).value();
  const EngramLayout layout = EngramLayout::Create(config).value();
  const RowFormat defaults;
  std::vector<ManifestLayer> layers;
  for (const LayerLayout& layer : layout.layers()) {
    layers.push_back({layer.layer_id, layer.row_count, {}});
  }
  return Manifest::Create(
             config,
             RowFormat::Create(defaults.code_dtype, defaults.scale_dtype,
                               config.head_dim, defaults.block_size)
                 .value(),
             partition_rows, std::move(layers), "synthetic:7")
      .value();
}

// Layers 1 and 14, of 7 and 8 partitions.
inline const Manifest& SmallManifest() {
  static const auto* manifest = new Manifest(MakeManifest("tiny", 4096));
  return *manifest;
}

inline constexpr size_t kAll = 15;  // partitions of SmallManifest

// Layers 1 and 14, of 5860 partitions each.
inline const Manifest& FullManifest() {
  static const auto* manifest = new Manifest(MakeManifest("v41", 65536));
  return *manifest;
}

inline std::vector<Member> Members(const Names& names) {
  std::vector<Member> members;
  for (const std::string& name : names) {
    members.push_back({.name = name, .address = name + ":1"});
  }
  return members;
}

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_TEST_MANIFEST_H_
