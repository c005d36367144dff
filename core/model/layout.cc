#include "core/model/layout.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/numpy_random.h"

namespace engram {
namespace {

uint64_t PowMod(uint64_t base, uint64_t exponent, uint64_t modulus) {
  uint64_t result = 1;
  for (base %= modulus; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = result * base % modulus;
    base = base * base % modulus;
  }
  return result;
}

// Whether odd n > 61 passes Miller-Rabin for `witness`.
bool PassesMillerRabin(uint32_t n, uint32_t witness) {
  uint32_t odd = n - 1;
  int twos = 0;
  for (; odd % 2 == 0; odd /= 2) ++twos;
  uint64_t x = PowMod(witness, odd, n);
  if (x == 1 || x == n - 1) return true;
  for (int i = 1; i < twos; ++i) {
    x = x * x % n;
    if (x == n - 1) return true;
  }
  return false;
}

bool IsPrime(uint32_t n) {
  if (n < 2) return false;
  for (uint32_t p = 2; p <= 61; ++p) {
    if (n % p == 0) return n == p;
  }
  // These witnesses decide every n below 4,759,123,141.
  return PassesMillerRabin(n, 2) && PassesMillerRabin(n, 7) &&
         PassesMillerRabin(n, 61);
}

std::vector<int64_t> DrawMultipliers(const EngramConfig& config,
                                     uint32_t layer_id) {
  const int64_t bound = std::numeric_limits<int64_t>::max() /
                        int64_t{config.compressed_vocab_size} / 2;
  NumpyRandom random(uint64_t{10007} * layer_id);
  std::vector<int64_t> multipliers(config.max_ngram_size);
  for (int64_t& multiplier : multipliers) {
    multiplier = random.Integer(bound) * 2 + 1;
  }
  return multipliers;
}

absl::Status CheckRows(const EngramConfig& config, size_t layer_index,
                       const LayerLayout& layer) {
  if (layer.row_count > kMaxLayerRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", ToInt(layer.layer_id), " has ", layer.row_count,
                     " rows, the limit is ", kMaxLayerRows));
  }
  if (!config.num_embeddings.empty() &&
      config.num_embeddings[layer_index] != layer.row_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", ToInt(layer.layer_id), " has ", layer.row_count,
                     " rows by its primes, engram_num_embeddings says ",
                     config.num_embeddings[layer_index]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EngramLayout> EngramLayout::Create(const EngramConfig& config) {
  ENGRAM_RETURN_IF_ERROR(ValidateConfig(config));
  EngramLayout layout;
  // Every size starts again at engram_vocab_size and skips what is taken, and
  // what is taken is always a run of primes from there: so one walk is enough.
  // No overflow: engram_vocab_size <= 2^31, and 65,536 primes follow soon.
  uint32_t candidate = config.engram_vocab_size;
  for (size_t i = 0; i < config.layer_ids.size(); ++i) {
    LayerLayout layer;
    layer.layer_id = LayerId{config.layer_ids[i]};
    for (uint32_t column = 0; column < config.columns(); ++column) {
      while (!IsPrime(candidate)) ++candidate;
      layer.primes.push_back(candidate);
      layer.offsets.push_back(layer.row_count);
      layer.row_count += candidate++;
    }
    layer.multipliers = DrawMultipliers(config, config.layer_ids[i]);
    ENGRAM_RETURN_IF_ERROR(CheckRows(config, i, layer));
    layout.layers_.push_back(std::move(layer));
  }
  return layout;
}

absl::StatusOr<size_t> EngramLayout::IndexOf(LayerId layer_id) const {
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].layer_id == layer_id) return i;
  }
  std::string known;
  for (const LayerLayout& layer : layers_) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", ToInt(layer.layer_id));
  }
  return absl::NotFoundError(absl::StrCat(
      "layer ", ToInt(layer_id), " has no Engram; layers ", known, " have"));
}

std::string EngramLayout::ToJson(const EngramConfig& config) const {
  using Json = nlohmann::ordered_json;
  Json primes = Json::array();
  Json offsets = Json::array();
  Json rows = Json::array();
  Json multipliers = Json::array();
  for (const LayerLayout& layer : layers_) {
    Json sizes = Json::array();
    for (auto head = layer.primes.begin(); head != layer.primes.end();
         head += config.n_heads) {
      sizes.push_back(std::vector<uint32_t>(head, head + config.n_heads));
    }
    primes.push_back(std::move(sizes));
    offsets.push_back(layer.offsets);
    rows.push_back(layer.row_count);
    Json texts = Json::array();
    for (const int64_t multiplier : layer.multipliers) {
      texts.push_back(absl::StrCat(multiplier));
    }
    multipliers.push_back(std::move(texts));
  }
  Json json;
  json["primes"] = std::move(primes);
  json["offsets"] = std::move(offsets);
  json["rows"] = std::move(rows);
  json["multipliers"] = std::move(multipliers);
  json["config"] = Json::parse(ConfigToJson(config));
  return json.dump(1);
}

}  // namespace engram
