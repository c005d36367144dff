#ifndef ENGRAM_COMPUTE_HASH_HASH_CONSTANTS_H_
#define ENGRAM_COMPUTE_HASH_HASH_CONSTANTS_H_

#include <cstdint>
#include <vector>

#include "compute/hash/hash_args.h"
#include "core/model/config.h"
#include "core/model/layout.h"

namespace engram {

// The arrays of HashModel, to be copied to a device.
struct HashConstants {
  std::vector<uint64_t> multipliers;
  std::vector<HashColumn> columns;
};

// REQUIRES: `layout` is of `config`.
HashConstants MakeHashConstants(const EngramConfig& config,
                                const EngramLayout& layout);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_HASH_HASH_CONSTANTS_H_
