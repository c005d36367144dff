#include "compute/hash/hash_constants.h"

#include <cstddef>
#include <cstdint>

#include "compute/hash/hash_core.h"
#include "core/base/check.h"

namespace engram {

HashConstants MakeHashConstants(const EngramConfig& config,
                                const EngramLayout& layout) {
  HashConstants constants;
  for (const LayerLayout& layer : layout.layers()) {
    ENGRAM_CHECK(layer.primes.size() == config.columns());
    ENGRAM_CHECK(layer.offsets.size() == config.columns());
    ENGRAM_CHECK(layer.multipliers.size() == config.max_ngram_size);
    for (const int64_t multiplier : layer.multipliers) {
      constants.multipliers.push_back(static_cast<uint64_t>(multiplier));
    }
    for (size_t i = 0; i < layer.primes.size(); ++i) {
      const PrimeDivisor divisor = MakePrimeDivisor(layer.primes[i]);
      HashColumn column;
      column.magic = divisor.magic;
      column.shift = divisor.shift;
      column.prime = divisor.prime;
      column.offset = static_cast<uint32_t>(layer.offsets[i]);
      column.ngram_size = static_cast<uint32_t>(i / config.n_heads + 2);
      constants.columns.push_back(column);
    }
  }
  return constants;
}

}  // namespace engram
