#include "table_server/loading/storage_metrics.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/rpc/metric_families.h"

namespace engram {
namespace {

struct Line {
  const char* name;
  const char* help;
  uint64_t (*value)(const RowStorage::Stats&);
};

constexpr Line kLines[] = {
    {"tier_host_bytes", "Rows of partitions that are whole in memory.",
     [](const RowStorage::Stats& s) { return s.tiered.host_bytes; }},
    {"tier_host_limit_bytes", "Their limit; partitions beyond it are cold.",
     [](const RowStorage::Stats& s) { return s.tiered.max_host_bytes; }},
    {"tier_cache_bytes", "Memory of the cache of rows of cold partitions.",
     [](const RowStorage::Stats& s) { return s.cache.bytes; }},
    {"tier_cache_rows", "Rows in it.",
     [](const RowStorage::Stats& s) { return s.cache.rows; }},
    {"tier_cache_limit_rows", "Their limit.",
     [](const RowStorage::Stats& s) { return s.cache.slots; }},
    {"cold_partitions", "Partitions whose rows are read as they are asked for.",
     [](const RowStorage::Stats& s) { return s.tiered.cold_partitions; }},
    {"cold_bytes", "Bytes of their rows.",
     [](const RowStorage::Stats& s) { return s.tiered.cold_bytes; }},
    {"cache_hits",
     "Rows of cold partitions found in the cache since the start.",
     [](const RowStorage::Stats& s) { return s.cache.hits; }},
    {"cache_misses", "Those that were not.",
     [](const RowStorage::Stats& s) { return s.cache.misses; }},
    {"cache_inserts", "Rows that came into the cache since the start.",
     [](const RowStorage::Stats& s) { return s.cache.inserts; }},
    {"cache_evictions", "Rows that gave them their place.",
     [](const RowStorage::Stats& s) { return s.cache.evictions; }},
    {"cache_dropped", "Rows left out of the cache as others were inserting.",
     [](const RowStorage::Stats& s) { return s.cache.dropped; }},
    {"cold_fetches", "Reads of rows of cold partitions since the start.",
     [](const RowStorage::Stats& s) { return s.stack.fetches; }},
    {"cold_fetched_rows", "Rows that they asked for.",
     [](const RowStorage::Stats& s) { return s.stack.fetched_rows; }},
    {"cold_failed_fetches", "Those that failed.",
     [](const RowStorage::Stats& s) { return s.stack.failed_fetches; }},
    {"damaged_copies",
     "Partitions found damaged in the local store since the start.",
     [](const RowStorage::Stats& s) { return s.tiered.damaged_copies; }},
    {"unkept_partitions",
     "Partitions that are in memory but not in the local store.",
     [](const RowStorage::Stats& s) { return s.tiered.unkept_partitions; }},
};

}  // namespace

StorageMetrics::StorageMetrics(std::shared_ptr<prometheus::Registry> registry)
    : registry_(std::move(registry)), local_(registry_) {
  for (const Line& line : kLines) {
    gauges_.push_back(&AddGauge(
        *registry_, absl::StrCat("engram_table_", line.name), line.help));
  }
}

void StorageMetrics::Update(const RowStorage::Stats& stats) {
  local_.Set(stats.local);
  for (size_t i = 0; i < std::size(kLines); ++i) {
    gauges_[i]->Set(static_cast<double>(kLines[i].value(stats)));
  }
}

}  // namespace engram
