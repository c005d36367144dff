#ifndef ENGRAM_CORE_MODEL_CONFIG_H_
#define ENGRAM_CORE_MODEL_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace engram {

// The most rows of one layer: row ids are uint32.
inline constexpr uint64_t kMaxLayerRows = uint64_t{1} << 32;
inline constexpr size_t kMaxConfigBytes = size_t{16} << 20;  // of config.json

// The Engram part of a model's config.json; names as there, without `engram_`.
// Values are checked: within the limits below, and consistent.
struct EngramConfig {
  uint32_t vocab_size = 0;  // token ids are below it
  uint32_t dim = 0;         // features of one stream
  uint32_t hc_mult = 0;     // hyper-connection streams
  double norm_eps = 0;
  std::vector<uint32_t> layer_ids;     // ascending, distinct
  uint32_t engram_vocab_size = 0;      // lower bound of the hash primes
  uint32_t max_ngram_size = 0;         // >= 2
  uint32_t pad_id = 0;                 // before the token map
  uint32_t compressed_vocab_size = 0;  // ids after the token map are below it
  uint32_t n_heads = 0;
  uint32_t head_dim = 0;                 // features of one row
  std::vector<uint64_t> num_embeddings;  // rows a layer; empty: not given

  // Rows that one token fetches in one layer: n-gram sizes x heads.
  uint32_t columns() const { return (max_ngram_size - 1) * n_heads; }
  // Width of the projection's input and output.
  uint32_t wkv_in() const { return columns() * head_dim; }
  uint32_t wkv_out() const { return dim * (hc_mult + 1); }
  // Tokens before a chunk that its hash looks back at.
  uint32_t max_lookback() const { return max_ngram_size - 1; }

  friend bool operator==(const EngramConfig&, const EngramConfig&) = default;
};

// Parses the text of a config.json; unknown keys are ignored (the file is the
// whole model's). INVALID_ARGUMENT names the key, the value and the limit.
absl::StatusOr<EngramConfig> ParseConfig(absl::string_view json);
absl::StatusOr<EngramConfig> LoadConfig(const std::string& path);

// What ParseConfig checks, for a config made or changed in code.
absl::Status ValidateConfig(const EngramConfig& config);

// The Engram keys alone, in a fixed order; ParseConfig reads it back to an
// equal value. Part of the manifest, so its bytes are part of the identity.
std::string ConfigToJson(const EngramConfig& config);

}  // namespace engram

#endif  // ENGRAM_CORE_MODEL_CONFIG_H_
