#include "core/model/manifest.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/atomic_file.h"
#include "core/base/check.h"
#include "core/base/read_file.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/manifest_json.h"

namespace engram {
namespace {

constexpr uint64_t kMaxPartitionRows = uint64_t{1} << 32;
// Bitmaps of a layer's partitions travel whole: 128 KiB at this limit.
constexpr uint64_t kMaxPartitions = uint64_t{1} << 20;

std::string Sha256Hex(absl::string_view text) {
  char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  ENGRAM_CHECK(EVP_Digest(text.data(), text.size(),
                          reinterpret_cast<unsigned char*>(digest), &size,
                          EVP_sha256(), nullptr) == 1);
  return absl::BytesToHexString({digest, size});
}

std::string DigestHex(const PartitionDigest& digest) {
  return absl::BytesToHexString(
      {reinterpret_cast<const char*>(digest.data()), digest.size()});
}

std::string LayerJson(const ManifestLayer& layer) {
  const std::string digests = absl::StrJoin(
      layer.digests, ",", [](std::string* out, const PartitionDigest& digest) {
        absl::StrAppend(out, "\n    \"", DigestHex(digest), "\"");
      });
  return absl::StrCat("\n  {\"layer_id\": ", ToInt(layer.layer_id),
                      ",\n   \"row_count\": ", layer.row_count,
                      ",\n   \"digests\": [", digests, "]}");
}

}  // namespace

PartitionDigest DigestOf(absl::Span<const std::byte> packed_rows) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(
      &canonical, XXH3_128bits(packed_rows.data(), packed_rows.size()));
  PartitionDigest digest;
  static_assert(sizeof(canonical.digest) == sizeof(digest));
  std::memcpy(digest.data(), canonical.digest, digest.size());
  return digest;
}

// The one text of these values: written by hand, so that no library's
// formatting is part of a table's identity.
absl::StatusOr<Manifest> Manifest::Create(const EngramConfig& config,
                                          const RowFormat& row_format,
                                          uint64_t partition_rows,
                                          std::vector<ManifestLayer> layers,
                                          absl::string_view source) {
  ENGRAM_RETURN_IF_ERROR(CheckManifestSource(source));
  const std::string layers_json = absl::StrJoin(
      layers, ",", [](std::string* out, const ManifestLayer& layer) {
        absl::StrAppend(out, LayerJson(layer));
      });
  return Parse(absl::StrCat(
      "{\n \"format\": \"", kManifestFormat, "\",\n \"table\": \"engram\",\n",
      " \"source\": \"", source, "\",\n \"config\": ", ConfigToJson(config),
      ",\n \"row_format\": {\"code_dtype\": \"", row_format.code_dtype,
      "\", \"scale_dtype\": \"", row_format.scale_dtype, "\", \"width\": ",
      row_format.width, ", \"block_size\": ", row_format.block_size,
      "},\n \"partition_rows\": ", partition_rows, ",\n \"layers\": [",
      layers_json, "]\n}\n"));
}

absl::StatusOr<Manifest> Manifest::Parse(absl::string_view json) {
  ENGRAM_ASSIGN_OR_RETURN(ManifestValues values, ParseManifestJson(json));
  Manifest manifest;
  manifest.version_ = Sha256Hex(json);
  manifest.json_ = std::string(json);
  manifest.table_ = std::move(values.table);
  manifest.source_ = std::move(values.source);
  manifest.config_ = std::move(values.config);
  manifest.row_format_ = std::move(values.row_format);
  manifest.partition_rows_ = values.partition_rows;
  manifest.layers_ = std::move(values.layers);
  return manifest;
}

absl::StatusOr<Manifest> Manifest::Load(const std::string& path) {
  ENGRAM_ASSIGN_OR_RETURN(const std::string json,
                          ReadFile(path, kMaxManifestBytes));
  absl::StatusOr<Manifest> manifest = Parse(json);
  if (!manifest.ok()) return Annotate(manifest.status(), path);
  return manifest;
}

absl::StatusOr<size_t> Manifest::IndexOf(LayerId layer_id) const {
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].layer_id == layer_id) return i;
  }
  return absl::NotFoundError(
      absl::StrCat("layer ", ToInt(layer_id), " has no Engram in this table"));
}

uint32_t Manifest::partition_count(size_t layer_index) const {
  ENGRAM_CHECK(layer_index < layers_.size());
  const uint64_t rows = layers_[layer_index].row_count;
  return static_cast<uint32_t>((rows + partition_rows_ - 1) / partition_rows_);
}

std::vector<std::pair<LayerId, uint32_t>> Manifest::PartitionCounts() const {
  std::vector<std::pair<LayerId, uint32_t>> counts;
  for (size_t i = 0; i < layers_.size(); ++i) {
    counts.emplace_back(layers_[i].layer_id, partition_count(i));
  }
  return counts;
}

uint64_t Manifest::RowsIn(size_t layer_index, PartitionId partition) const {
  ENGRAM_CHECK(ToInt(partition) < partition_count(layer_index));
  const uint64_t first_row = ToInt(partition) * partition_rows_;
  return std::min(partition_rows_, layers_[layer_index].row_count - first_row);
}

absl::Status Manifest::Save(const std::string& path) const {
  return WriteFileAtomically(path, json_);
}

uint64_t DefaultPartitionRows(absl::Span<const uint64_t> row_counts) {
  constexpr uint64_t kLargest = uint64_t{1} << 16;
  constexpr uint64_t kWantedPartitions = 64;
  const auto fewest = std::min_element(row_counts.begin(), row_counts.end());
  uint64_t rows = kLargest;
  if (fewest == row_counts.end()) return rows;
  while (rows > 1 && (*fewest + rows - 1) / rows < kWantedPartitions) rows /= 2;
  return rows;
}

absl::Status CheckPartitionRows(uint64_t partition_rows,
                                absl::Span<const uint64_t> row_counts) {
  if (partition_rows == 0 || partition_rows > kMaxPartitionRows ||
      (partition_rows & (partition_rows - 1)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("partition_rows is ", partition_rows,
                     ", not a power of two within 1 .. ", kMaxPartitionRows));
  }
  for (const uint64_t rows : row_counts) {
    if (rows == 0 || (rows - 1) / partition_rows < kMaxPartitions) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "partition_rows is ", partition_rows, ", which cuts ", rows,
        " rows into more than ", kMaxPartitions, " partitions"));
  }
  return absl::OkStatus();
}

}  // namespace engram
