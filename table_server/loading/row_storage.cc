#include "table_server/loading/row_storage.h"

#include <optional>
#include <string>
#include <utility>

#include "core/base/log.h"
#include "core/base/numa.h"
#include "core/base/status_macros.h"
#include "table_server/loading/available_memory.h"
#include "table_server/loading/host_store.h"
#include "table_server/loading/make_partition_source.h"
#include "table_server/loading/open_local_store.h"
#include "table_server/loading/synthetic_store.h"
#include "table_server/store/store_manifest.h"
#include "table_server/tier/host_tier.h"
#include "table_server/tier/synthetic_tier.h"

namespace engram {
namespace {

class SyntheticStorage final : public RowStorage {
 public:
  explicit SyntheticStorage(const TableSource& source)
      : layer_count_(source.manifest.layers().size()),
        tier_(std::make_unique<SyntheticTier>(source.manifest,
                                              *source.synthetic_seed)) {}

  std::unique_ptr<RowTier> TakeTier() override { return std::move(tier_); }
  PartitionStore& store() override { return store_; }
  std::vector<RowDefects> defects() const override {
    return std::vector<RowDefects>(layer_count_);
  }

 private:
  const size_t layer_count_;
  std::unique_ptr<RowTier> tier_;
  SyntheticStore store_;
};

// What a checkpoint and peers give.
class Sources {
 public:
  Sources(const TableSource& source, PartitionSource* peers)
      : checkpoint_(MakePartitionSource(source)) {
    if (checkpoint_ != nullptr) list_.push_back(checkpoint_.get());
    if (peers != nullptr) list_.push_back(peers);
  }
  const std::vector<PartitionSource*>& list() const { return list_; }

 private:
  const std::unique_ptr<PartitionSource> checkpoint_;
  std::vector<PartitionSource*> list_;
};

class HostStorage final : public RowStorage {
 public:
  HostStorage(const TableSource& source, std::unique_ptr<HostTier> tier,
              const Options& options)
      : tier_(std::move(tier)),
        sources_(source, options.peers),
        store_(source.manifest, *tier_,
               {.sources = sources_.list(),
                .memory_limit_bytes = options.memory_limit_bytes,
                .max_bytes_in_flight = options.max_bytes_in_flight}) {}

  std::unique_ptr<RowTier> TakeTier() override { return std::move(tier_); }
  PartitionStore& store() override { return store_; }
  std::vector<RowDefects> defects() const override { return store_.defects(); }

 private:
  std::unique_ptr<HostTier> tier_;
  const Sources sources_;
  HostStore store_;
};

// The parts of a stack outlive the tier that is taken.
struct StackParts {
  std::unique_ptr<HostTier> host;
  std::unique_ptr<RowCache> cache;
  std::unique_ptr<LocalStore> local;
  std::unique_ptr<DamagedCopies> damaged;
  AvailableMemory available;
};

class TieredStorage final : public RowStorage {
 public:
  TieredStorage(const TableSource& source, StackParts parts,
                std::unique_ptr<TierStack> tier, const Options& options)
      : parts_(std::move(parts)),
        tier_(std::move(tier)),
        stack_(*tier_),
        sources_(source, options.peers),
        store_(source.manifest, *parts_.host, *parts_.local, *parts_.damaged,
               {.sources = sources_.list(),
                .available = parts_.available,
                .max_host_bytes = options.tiers.max_host_bytes,
                .cache_bytes = options.tiers.cache_bytes,
                .max_bytes_in_flight = options.max_bytes_in_flight,
                .load_threads = options.load_threads,
                .max_store_bytes = options.tiers.max_store_bytes}) {}

  std::unique_ptr<RowTier> TakeTier() override { return std::move(tier_); }
  PartitionStore& store() override { return store_; }
  std::vector<RowDefects> defects() const override { return store_.defects(); }
  std::optional<Stats> stats() const override {
    return Stats{.tiered = store_.stats(),
                 .stack = stack_.stats(),
                 .cache = parts_.cache == nullptr ? RowCache::Stats{}
                                                  : parts_.cache->stats(),
                 .local = parts_.local->stats()};
  }
  void SetOnDamaged(
      std::function<void(const PartitionRef&)> on_damaged) override {
    parts_.damaged->SetListener(std::move(on_damaged));
  }

 private:
  const StackParts parts_;
  std::unique_ptr<TierStack> tier_;  // until it is taken
  const TierStack& stack_;
  const Sources sources_;
  TieredStore store_;
};

// For a start without the network.
void NoteServed(const Manifest& manifest, const LocalStorePlace& place) {
  const absl::Status noted =
      NoteServedVersion(place.manifests(), manifest.version());
  if (noted.ok()) return;
  spdlog::warn("{} does not know which table version is served: {}", place.dir,
               std::string(noted.message()));
}

absl::StatusOr<std::unique_ptr<RowStorage>> CreateTiered(
    const TableSource& source, std::unique_ptr<HostTier> host,
    const RowStorage::Options& options) {
  StackParts parts;
  parts.available = {options.memory_limit_bytes, "its option"};
  if (options.memory_limit_bytes == 0) {
    ENGRAM_ASSIGN_OR_RETURN(parts.available, ReadAvailableMemory(""));
  }
  // Before it is taken.
  const OtherMemory cache{"the row cache", options.tiers.cache_bytes};
  ENGRAM_RETURN_IF_ERROR(CheckMemory({}, options.max_bytes_in_flight,
                                     parts.available,
                                     absl::MakeConstSpan(&cache, 1)));
  parts.host = std::move(host);
  ENGRAM_ASSIGN_OR_RETURN(const LocalStorePlace place,
                          LocalStorePlace::Parse(options.tiers.store));
  ENGRAM_ASSIGN_OR_RETURN(
      parts.local, OpenLocalStore(source.manifest, place, options.tiers));
  NoteServed(source.manifest, place);
  parts.damaged = std::make_unique<DamagedCopies>();
  if (options.tiers.cache_bytes > 0) {
    ENGRAM_ASSIGN_OR_RETURN(
        parts.cache, RowCache::Create({.max_bytes = options.tiers.cache_bytes,
                                       .row_bytes = parts.host->row_bytes()}));
  }
  ENGRAM_ASSIGN_OR_RETURN(
      std::unique_ptr<TierStack> tier,
      TierStack::Create(source.manifest, {.host = parts.host.get(),
                                          .cache = parts.cache.get(),
                                          .store = parts.local.get(),
                                          .damaged = parts.damaged.get()}));
  return std::make_unique<TieredStorage>(source, std::move(parts),
                                         std::move(tier), options);
}

// What needs a local store.
absl::Status CheckWithoutStore(const TierOptions& tiers) {
  if (!tiers.max_host_bytes.has_value() && tiers.max_store_bytes == 0 &&
      !tiers.remove_other_versions) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "a limit of the rows in memory, or of a local store, needs a local "
      "store, and so does the removal of other table versions");
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowStorage>> RowStorage::Create(
    const TableSource& source, const Options& options) {
  const bool has_store = !options.tiers.store.empty();
  if (!has_store) ENGRAM_RETURN_IF_ERROR(CheckWithoutStore(options.tiers));
  if (source.synthetic_seed.has_value()) {
    if (has_store) {
      return absl::InvalidArgumentError(
          "rows that are computed have no use for a local store");
    }
    return std::make_unique<SyntheticStorage>(source);
  }
  const std::vector<int> nodes = ThisNumaTopology().NodesWithMemory();
  if (nodes.size() > 1) {
    spdlog::info("rows are spread over {} NUMA nodes", nodes.size());
  }
  ENGRAM_ASSIGN_OR_RETURN(std::unique_ptr<HostTier> tier,
                          HostTier::Create(source.manifest, nodes));
  if (has_store) return CreateTiered(source, std::move(tier), options);
  return std::make_unique<HostStorage>(source, std::move(tier), options);
}

}  // namespace engram
