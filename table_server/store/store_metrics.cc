#include "table_server/store/store_metrics.h"

#include "absl/strings/str_cat.h"
#include "core/rpc/metric_families.h"

namespace engram {
namespace {

struct Entry {
  uint64_t StoreStats::*value;
  const char* name;
  const char* help;
};

constexpr Entry kEntries[] = {
    {&StoreStats::reads, "reads",
     "Blocks read from the local disk for gathers since the start."},
    {&StoreStats::read_bytes, "read_bytes",
     "Bytes read from the local disk since the start."},
    {&StoreStats::puts, "puts", "Partitions written since the start."},
    {&StoreStats::put_bytes, "put_bytes",
     "Bytes of rows written since the start."},
    {&StoreStats::read_errors, "read_errors",
     "Reads that the local disk failed since the start."},
    {&StoreStats::corrupt_blocks, "corrupt_blocks",
     "Reads since the start that were not what was written."},
    {&StoreStats::late_fetches, "late_fetches",
     "Fetches of rows that ended at their deadline since the start."},
    {&StoreStats::refused_fetches, "refused_fetches",
     "Fetches of rows refused since the start, too many reads waiting."},
    {&StoreStats::full_puts, "full_puts",
     "Partitions not written since the start for lack of room."},
    {&StoreStats::failed_puts, "failed_puts",
     "Partitions not written since the start for other reasons."},
    {&StoreStats::dropped_damaged, "dropped_damaged",
     "Partitions dropped since the start: a read found them damaged or gone, "
     "or the disk failed three reads."},
    {&StoreStats::removed_half_written, "removed_half_written",
     "Half-written files removed at the start."},
    {&StoreStats::removed_damaged, "removed_damaged",
     "Files that were not of this table, or damaged, removed at the start."},
    {&StoreStats::queued_reads, "queued_reads", "Reads waiting or under way."},
    {&StoreStats::max_queued_reads, "queued_reads_limit", "Most of those."},
    {&StoreStats::open_files, "open_files", "Files kept open for reads."},
    {&StoreStats::max_open_files, "open_files_limit", "Most of those."},
    {&StoreStats::partitions, "partitions", "Complete ones on the local disk."},
    {&StoreStats::disk_bytes, "disk_bytes",
     "What this table takes on the local disk."},
    {&StoreStats::other_version_bytes, "other_version_bytes",
     "What other versions took there at the start; counts towards the limit."},
    {&StoreStats::max_bytes, "disk_bytes_limit", "Most of both; 0: no limit."},
    {&StoreStats::index_bytes, "index_bytes",
     "Memory of the local store to find blocks on the disk."},
    {&StoreStats::background_errors, "background_errors",
     "Errors since the start that stopped writes until the next one."},
};

}  // namespace

StoreMetrics::StoreMetrics(std::shared_ptr<prometheus::Registry> registry)
    : registry_(std::move(registry)) {
  for (const Entry& entry : kEntries) {
    gauges_.emplace_back(
        entry.value,
        &AddGauge(*registry_, absl::StrCat("engram_table_store_", entry.name),
                  entry.help));
  }
}

void StoreMetrics::Set(const StoreStats& stats) {
  for (const auto& [value, gauge] : gauges_) {
    gauge->Set(static_cast<double>(stats.*value));
  }
}

}  // namespace engram
