#include "core/model/config.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/read_file.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/strict_json.h"

namespace engram {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxLayers = 64;
// numpy seeds a layer's generator with 10007 * layer id: stays in 32 bits.
constexpr uint32_t kMaxLayerId = 65535;
constexpr uint32_t kMaxColumns = 1024;
// Each side of wkv: its element count then stays below 2^40.
constexpr uint64_t kMaxWkvWidth = uint64_t{1} << 20;
constexpr uint32_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr double kMinNormEps = std::numeric_limits<float>::min();
constexpr double kMaxNormEps = 1;

constexpr char kNormEps[] = "norm_eps";
constexpr char kLayerIds[] = "engram_layer_ids";
constexpr char kNumEmbeddings[] = "engram_num_embeddings";

struct IntegerKey {
  const char* key;
  uint32_t EngramConfig::*field;
  uint32_t min;
  uint32_t max;
  uint32_t multiple_of;
};

// Multiples of 32: rows and wkv carry one scale for each 32 features.
constexpr IntegerKey kIntegerKeys[] = {
    {"vocab_size", &EngramConfig::vocab_size, 1, kMaxInt32, 1},
    {"dim", &EngramConfig::dim, 32, 65536, 32},
    {"hc_mult", &EngramConfig::hc_mult, 1, 64, 1},
    {"engram_vocab_size", &EngramConfig::engram_vocab_size, 2,
     uint32_t{1} << 31, 1},
    {"engram_max_ngram_size", &EngramConfig::max_ngram_size, 2, 32, 1},
    {"engram_pad_id", &EngramConfig::pad_id, 0, kMaxInt32, 1},
    {"engram_compressed_vocab_size", &EngramConfig::compressed_vocab_size, 1,
     kMaxInt32, 1},
    {"engram_n_heads", &EngramConfig::n_heads, 1, kMaxColumns, 1},
    {"engram_head_dim", &EngramConfig::head_dim, 32, 65536, 32},
};

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("config: ", parts...));
}

absl::Status CheckRange(absl::string_view key, uint64_t value, uint64_t min,
                        uint64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return Invalid(key, " is ", value, ", not within ", min, " .. ", max);
}

// A list of 1 .. kMaxLayers whole numbers, one for each Engram layer.
template <typename T>
absl::StatusOr<std::vector<T>> ToIntegers(const char* key, const Json& value,
                                          uint64_t max) {
  if (!value.is_array()) {
    return Invalid(key, " is a ", value.type_name(), ", not a list");
  }
  ENGRAM_RETURN_IF_ERROR(CheckRange(absl::StrCat("the length of ", key),
                                    value.size(), 1, kMaxLayers));
  std::vector<T> numbers;
  for (const Json& element : value) {
    if (!element.is_number_unsigned()) {
      return Invalid(key, " has an entry that is not a whole number");
    }
    const auto number = element.get<uint64_t>();
    ENGRAM_RETURN_IF_ERROR(CheckRange(key, number, 0, max));
    numbers.push_back(static_cast<T>(number));
  }
  return numbers;
}

absl::Status CheckLayers(const EngramConfig& config) {
  const std::vector<uint32_t>& ids = config.layer_ids;
  ENGRAM_RETURN_IF_ERROR(CheckRange(absl::StrCat("the length of ", kLayerIds),
                                    ids.size(), 1, kMaxLayers));
  for (size_t i = 0; i < ids.size(); ++i) {
    ENGRAM_RETURN_IF_ERROR(CheckRange(kLayerIds, ids[i], 0, kMaxLayerId));
    if (i > 0 && ids[i] <= ids[i - 1]) {
      return Invalid(kLayerIds, " has ", ids[i], " after ", ids[i - 1],
                     ": it must ascend");
    }
  }
  const std::vector<uint64_t>& rows = config.num_embeddings;
  if (!rows.empty() && rows.size() != ids.size()) {
    return Invalid(kNumEmbeddings, " has ", rows.size(), " entries for ",
                   ids.size(), " layers");
  }
  for (const uint64_t count : rows) {
    ENGRAM_RETURN_IF_ERROR(CheckRange(kNumEmbeddings, count, 1, kMaxLayerRows));
  }
  return absl::OkStatus();
}

// Limits on what several values make together.
absl::Status CheckProducts(const EngramConfig& config) {
  if (config.compressed_vocab_size > config.vocab_size) {
    return Invalid("engram_compressed_vocab_size ",
                   config.compressed_vocab_size, " is above vocab_size ",
                   config.vocab_size);
  }
  if (config.pad_id >= config.vocab_size) {
    return Invalid("engram_pad_id ", config.pad_id, " is not below vocab_size ",
                   config.vocab_size);
  }
  ENGRAM_RETURN_IF_ERROR(
      CheckRange("(engram_max_ngram_size - 1) * engram_n_heads",
                 config.columns(), 1, kMaxColumns));
  ENGRAM_RETURN_IF_ERROR(CheckRange(
      "the projection's input (columns * engram_head_dim)",
      uint64_t{config.columns()} * config.head_dim, 1, kMaxWkvWidth));
  return CheckRange("the projection's output (dim * (hc_mult + 1))",
                    uint64_t{config.dim} * (config.hc_mult + 1), 1,
                    kMaxWkvWidth);
}

}  // namespace

absl::Status ValidateConfig(const EngramConfig& config) {
  for (const IntegerKey& key : kIntegerKeys) {
    const uint32_t value = config.*key.field;
    ENGRAM_RETURN_IF_ERROR(CheckRange(key.key, value, key.min, key.max));
    if (value % key.multiple_of != 0) {
      return Invalid(key.key, " is ", value, ", not a multiple of ",
                     key.multiple_of);
    }
  }
  // Written so that NaN fails. Below the smallest normal float32 the gate
  // would divide by zero at a stream of zeros.
  if (!(config.norm_eps >= kMinNormEps && config.norm_eps <= kMaxNormEps)) {
    return Invalid(kNormEps, " is ", config.norm_eps, ", not within ",
                   kMinNormEps, " .. ", kMaxNormEps);
  }
  ENGRAM_RETURN_IF_ERROR(CheckLayers(config));
  return CheckProducts(config);
}

absl::StatusOr<EngramConfig> ParseConfig(absl::string_view json) {
  if (json.size() > kMaxConfigBytes) {
    return Invalid(json.size(), " bytes of text, the limit is ",
                   kMaxConfigBytes);
  }
  ENGRAM_ASSIGN_OR_RETURN(const Json object, ParseStrictJson(json));
  if (!object.is_object()) {
    return Invalid("a JSON ", object.type_name(), ", not an object");
  }

  EngramConfig config;
  for (const IntegerKey& key : kIntegerKeys) {
    ENGRAM_ASSIGN_OR_RETURN(const uint64_t number,
                            JsonUint(object, key.key, key.max));
    config.*key.field = static_cast<uint32_t>(number);
  }
  ENGRAM_ASSIGN_OR_RETURN(const Json* norm_eps, JsonMember(object, kNormEps));
  if (!norm_eps->is_number()) {
    return Invalid(kNormEps, " is a ", norm_eps->type_name(), ", not a number");
  }
  config.norm_eps = norm_eps->get<double>();
  ENGRAM_ASSIGN_OR_RETURN(const Json* layer_ids, JsonMember(object, kLayerIds));
  ENGRAM_ASSIGN_OR_RETURN(
      config.layer_ids,
      ToIntegers<uint32_t>(kLayerIds, *layer_ids, kMaxLayerId));
  if (const auto rows = object.find(kNumEmbeddings); rows != object.end()) {
    ENGRAM_ASSIGN_OR_RETURN(
        config.num_embeddings,
        ToIntegers<uint64_t>(kNumEmbeddings, *rows, kMaxLayerRows));
  }
  ENGRAM_RETURN_IF_ERROR(ValidateConfig(config));
  return config;
}

absl::StatusOr<EngramConfig> LoadConfig(const std::string& path) {
  ENGRAM_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(path, kMaxConfigBytes));
  absl::StatusOr<EngramConfig> config = ParseConfig(text);
  if (!config.ok()) return Annotate(config.status(), path);
  return config;
}

std::string ConfigToJson(const EngramConfig& config) {
  nlohmann::ordered_json json;
  json["vocab_size"] = config.vocab_size;
  json["dim"] = config.dim;
  json["hc_mult"] = config.hc_mult;
  json[kNormEps] = config.norm_eps;
  json[kLayerIds] = config.layer_ids;
  json["engram_vocab_size"] = config.engram_vocab_size;
  json["engram_max_ngram_size"] = config.max_ngram_size;
  json["engram_pad_id"] = config.pad_id;
  json["engram_compressed_vocab_size"] = config.compressed_vocab_size;
  json["engram_n_heads"] = config.n_heads;
  json["engram_head_dim"] = config.head_dim;
  if (!config.num_embeddings.empty()) {
    json[kNumEmbeddings] = config.num_embeddings;
  }
  return json.dump();
}

}  // namespace engram
