#include "table_server/loading/row_storage.h"

#include <optional>
#include <utility>

#include "core/base/log.h"
#include "core/base/numa.h"
#include "core/base/status_macros.h"
#include "table_server/loading/checkpoint_source.h"
#include "table_server/loading/host_store.h"
#include "table_server/loading/http_checkpoint_source.h"
#include "table_server/loading/synthetic_store.h"
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

class HostStorage final : public RowStorage {
 public:
  HostStorage(const TableSource& source, std::unique_ptr<HostTier> tier,
              const Options& options)
      : tier_(std::move(tier)) {
    HostStore::Options store_options{
        .memory_limit_bytes = options.memory_limit_bytes,
        .max_bytes_in_flight = options.max_bytes_in_flight};
    if (source.checkpoint.has_value()) {
      checkpoint_.emplace(*source.checkpoint, source.manifest);
      store_options.sources.push_back(&*checkpoint_);
    }
    if (source.http != nullptr) {
      http_.emplace(*source.http, source.manifest);
      store_options.sources.push_back(&*http_);
    }
    if (options.peers != nullptr) {
      store_options.sources.push_back(options.peers);
    }
    store_.emplace(source.manifest, *tier_, std::move(store_options));
  }

  std::unique_ptr<RowTier> TakeTier() override { return std::move(tier_); }
  PartitionStore& store() override { return *store_; }
  std::vector<RowDefects> defects() const override { return store_->defects(); }

 private:
  std::unique_ptr<HostTier> tier_;
  std::optional<CheckpointSource> checkpoint_;
  std::optional<HttpCheckpointSource> http_;
  std::optional<HostStore> store_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowStorage>> RowStorage::Create(
    const TableSource& source, const Options& options) {
  if (source.synthetic_seed.has_value()) {
    return std::make_unique<SyntheticStorage>(source);
  }
  const std::vector<int> nodes = ThisNumaTopology().NodesWithMemory();
  if (nodes.size() > 1) {
    spdlog::info("rows are spread over {} NUMA nodes", nodes.size());
  }
  ENGRAM_ASSIGN_OR_RETURN(std::unique_ptr<HostTier> tier,
                          HostTier::Create(source.manifest, nodes));
  return std::make_unique<HostStorage>(source, std::move(tier), options);
}

}  // namespace engram
