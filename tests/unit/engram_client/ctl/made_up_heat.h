#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_CTL_MADE_UP_HEAT_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_CTL_MADE_UP_HEAT_H_

#include <map>
#include <string>
#include <vector>

#include "core/wire/heat_hash.h"
#include "engram_client/ctl/heat_reader.h"

namespace engram::ctl {

inline constexpr uint64_t kWholeSample = ~uint64_t{0};

// What a server would tell that was asked for the rows of layer 14 as `lookups`
// says, of a table of a million rows in ten partitions.
inline ServerHeat MadeUpHeat(const std::string& name,
                             const std::map<uint32_t, uint64_t>& lookups,
                             uint64_t last_hash = kWholeSample) {
  ServerHeat heat;
  heat.address = "10.0.0.1:" + name;
  heat.name = name;
  heat.version = "0123456789abcdef";
  heat.instance_id = std::hash<std::string>()(name);
  heat.row_bytes = 264;
  heat.elapsed_ms = 60'000;
  heat.last_hash = last_hash;
  heat.lookups_per_hit = 16;
  heat.layers = {{14, 1'000'000, std::vector<uint64_t>(10)}};
  for (const auto& [row, count] : lookups) {
    const uint64_t key = HeatKey(LayerId{14}, row);
    heat.layers[0].partition_lookups[row / 100'000] += count;
    if (HeatHash(key) <= last_hash) heat.sample.push_back({key, count});
    if (count >= 16) heat.hot.push_back({key, count / 16 * 16});
  }
  return heat;
}

}  // namespace engram::ctl

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_CTL_MADE_UP_HEAT_H_
