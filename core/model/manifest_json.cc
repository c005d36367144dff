#include "core/model/manifest_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/layout.h"
#include "core/model/strict_json.h"

namespace engram {
namespace {

using nlohmann::json;

constexpr absl::string_view kCheckpointSource = "checkpoint";
constexpr absl::string_view kSyntheticPrefix = "synthetic:";

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::StatusOr<const json*> Object(const json& parent, const std::string& key) {
  ENGRAM_ASSIGN_OR_RETURN(const json* value, JsonMember(parent, key));
  if (!value->is_object()) return Invalid("key '", key, "' is not an object");
  return value;
}

absl::StatusOr<const json*> List(const json& parent, const std::string& key) {
  ENGRAM_ASSIGN_OR_RETURN(const json* value, JsonMember(parent, key));
  if (!value->is_array()) return Invalid("key '", key, "' is not a list");
  return value;
}

// A table's name goes into paths, flags and metrics.
absl::Status CheckTableName(absl::string_view name) {
  constexpr size_t kMaxNameBytes = 64;
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
           c == '_';
  });
  if (plain && !name.empty() && name.size() <= kMaxNameBytes) {
    return absl::OkStatus();
  }
  return Invalid("table is ", Quoted(name), ", not a name of 1 .. ",
                 kMaxNameBytes, " letters, digits, '-' and '_'");
}

absl::StatusOr<RowFormat> ParseRowFormat(const json& manifest,
                                         const EngramConfig& config) {
  ENGRAM_ASSIGN_OR_RETURN(const json* object, Object(manifest, "row_format"));
  ENGRAM_ASSIGN_OR_RETURN(const std::string code_dtype,
                          JsonString(*object, "code_dtype"));
  ENGRAM_ASSIGN_OR_RETURN(const std::string scale_dtype,
                          JsonString(*object, "scale_dtype"));
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t width,
                          JsonUint(*object, "width", UINT32_MAX));
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t block_size,
                          JsonUint(*object, "block_size", UINT32_MAX));
  if (width != config.head_dim) {
    return Invalid("row_format has the width ", width,
                   ", the config gives engram_head_dim ", config.head_dim);
  }
  return RowFormat::Create(code_dtype, scale_dtype, width, block_size);
}

absl::StatusOr<PartitionDigest> ParseDigest(const json& value) {
  PartitionDigest digest;
  const auto* text = value.get_ptr<const std::string*>();
  if (text == nullptr || text->size() != 2 * digest.size() ||
      !std::all_of(text->begin(), text->end(), absl::ascii_isxdigit)) {
    return Invalid("a digest is ",
                   text == nullptr ? value.type_name() : Quoted(*text),
                   ", not ", 2 * digest.size(), " hex digits");
  }
  const std::string bytes = absl::HexStringToBytes(*text);
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

// The digests of one layer: one for each of `partitions`, none when rows are
// computed.
absl::StatusOr<std::vector<PartitionDigest>> ParseDigests(const json& layer,
                                                          uint64_t partitions,
                                                          bool is_synthetic) {
  ENGRAM_ASSIGN_OR_RETURN(const json* list, List(layer, "digests"));
  const uint64_t wanted = is_synthetic ? 0 : partitions;
  if (list->size() != wanted) {
    return Invalid(list->size(), " digests, ", wanted, " are needed for ",
                   partitions, is_synthetic ? " synthetic" : "", " partitions");
  }
  std::vector<PartitionDigest> digests;
  digests.reserve(list->size());
  for (const json& value : *list) {
    ENGRAM_ASSIGN_OR_RETURN(const PartitionDigest digest, ParseDigest(value));
    digests.push_back(digest);
  }
  return digests;
}

absl::StatusOr<ManifestLayer> ParseLayer(const json& value,
                                         const LayerLayout& layout,
                                         uint64_t partition_rows,
                                         bool is_synthetic) {
  if (!value.is_object()) return Invalid("not an object");
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t layer_id,
                          JsonUint(value, "layer_id", UINT32_MAX));
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t row_count,
                          JsonUint(value, "row_count", UINT64_MAX));
  if (layer_id != ToInt(layout.layer_id)) {
    return Invalid("layer_id is ", layer_id, ", the config gives ",
                   ToInt(layout.layer_id));
  }
  if (row_count != layout.row_count) {
    return Invalid("layer ", layer_id, " has ", row_count,
                   " rows, the config gives ", layout.row_count);
  }
  const uint64_t partitions = (row_count + partition_rows - 1) / partition_rows;
  ManifestLayer layer = {layout.layer_id, row_count, {}};
  ENGRAM_ASSIGN_OR_RETURN(layer.digests,
                          ParseDigests(value, partitions, is_synthetic));
  return layer;
}

absl::StatusOr<std::vector<ManifestLayer>> ParseLayers(
    const json& manifest, const ManifestValues& values) {
  ENGRAM_ASSIGN_OR_RETURN(const json* list, List(manifest, "layers"));
  if (list->size() != values.config.layer_ids.size()) {
    return Invalid(list->size(), " layers, the config gives ",
                   values.config.layer_ids.size());
  }
  ENGRAM_ASSIGN_OR_RETURN(const EngramLayout layout,
                          EngramLayout::Create(values.config));
  std::vector<uint64_t> row_counts;
  for (const LayerLayout& layer : layout.layers()) {
    row_counts.push_back(layer.row_count);
  }
  ENGRAM_RETURN_IF_ERROR(CheckPartitionRows(values.partition_rows, row_counts));
  std::vector<ManifestLayer> layers;
  for (size_t i = 0; i < list->size(); ++i) {
    absl::StatusOr<ManifestLayer> layer =
        ParseLayer((*list)[i], layout.layers()[i], values.partition_rows,
                   values.source != kCheckpointSource);
    if (!layer.ok()) {
      return Annotate(layer.status(), absl::StrCat("layers[", i, "]"));
    }
    layers.push_back(*std::move(layer));
  }
  return layers;
}

}  // namespace

absl::Status CheckManifestSource(absl::string_view source) {
  if (source == kCheckpointSource) return absl::OkStatus();
  absl::string_view seed = source;
  uint64_t number = 0;
  if (absl::ConsumePrefix(&seed, kSyntheticPrefix) &&
      absl::SimpleAtoi(seed, &number) && absl::StrCat(number) == seed) {
    return absl::OkStatus();
  }
  return Invalid("source is ", Quoted(source), ", neither ", kCheckpointSource,
                 " nor ", kSyntheticPrefix, "SEED");
}

absl::StatusOr<ManifestValues> ParseManifestJson(absl::string_view text) {
  if (text.size() > kMaxManifestBytes) {
    return Invalid("a manifest of ", text.size(), " bytes, the limit is ",
                   kMaxManifestBytes);
  }
  ENGRAM_ASSIGN_OR_RETURN(const json manifest, ParseStrictJson(text));
  if (!manifest.is_object()) return Invalid("a manifest is an object");
  ENGRAM_ASSIGN_OR_RETURN(const std::string format,
                          JsonString(manifest, "format"));
  if (format != kManifestFormat) {
    return Invalid("format is ", Quoted(format), ", this build reads ",
                   kManifestFormat);
  }
  ManifestValues values;
  ENGRAM_ASSIGN_OR_RETURN(values.table, JsonString(manifest, "table"));
  ENGRAM_RETURN_IF_ERROR(CheckTableName(values.table));
  ENGRAM_ASSIGN_OR_RETURN(values.source, JsonString(manifest, "source"));
  ENGRAM_RETURN_IF_ERROR(CheckManifestSource(values.source));
  ENGRAM_ASSIGN_OR_RETURN(const json* config, Object(manifest, "config"));
  ENGRAM_ASSIGN_OR_RETURN(values.config, ParseConfig(config->dump()));
  ENGRAM_ASSIGN_OR_RETURN(values.row_format,
                          ParseRowFormat(manifest, values.config));
  ENGRAM_ASSIGN_OR_RETURN(values.partition_rows,
                          JsonUint(manifest, "partition_rows", UINT64_MAX));
  ENGRAM_ASSIGN_OR_RETURN(values.layers, ParseLayers(manifest, values));
  return values;
}

}  // namespace engram
