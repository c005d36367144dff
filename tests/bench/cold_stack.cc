// The tiers of a table server with no partition in memory.

#include <utility>

#include "core/base/status_macros.h"
#include "core/cache/row_cache.h"
#include "table_server/store/flat_store.h"
#include "table_server/tier/host_tier.h"
#include "table_server/tier/tier_stack.h"
#include "tests/bench/cold_contestant.h"

namespace engram::bench {
namespace {

constexpr size_t kPutThreads = 4;

absl::StatusOr<std::unique_ptr<FlatStore>> OpenStore(
    const SyntheticTable& table, const std::string& dir, size_t threads) {
  return FlatStore::Open(table.manifest(),
                         {.dir = dir, .reads = {.thread_count = threads}});
}

absl::Status Prepare(const SyntheticTable& table, const std::string& dir) {
  ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<FlatStore> store,
                          OpenStore(table, dir, 1));
  return table.ForPartitions(kPutThreads, [&](uint32_t p) {
    thread_local std::vector<std::byte> packed(table.partition_bytes());
    table.Fill(p, absl::MakeSpan(packed));
    return store->Put(table.Ref(p), packed);
  });
}

class Stack final : public ColdContestant {
 public:
  static absl::StatusOr<std::unique_ptr<ColdContestant>> Open(
      const SyntheticTable& table, const ColdOptions& options) {
    auto opened = std::unique_ptr<Stack>(new Stack);
    ENGRAM_ASSIGN_OR_RETURN(opened->host_, HostTier::Create(table.manifest()));
    ENGRAM_ASSIGN_OR_RETURN(opened->cache_,
                            RowCache::Create({.max_bytes = options.cache_bytes,
                                              .row_bytes = table.row_bytes()}));
    ENGRAM_ASSIGN_OR_RETURN(opened->store_,
                            OpenStore(table, options.dir, options.threads));
    ENGRAM_ASSIGN_OR_RETURN(
        opened->tier_,
        TierStack::Create(table.manifest(), {.host = opened->host_.get(),
                                             .cache = opened->cache_.get(),
                                             .store = opened->store_.get()}));
    return opened;
  }

  absl::Status Gather(absl::Span<const RowId> row_ids,
                      absl::Span<std::byte> out) override {
    std::vector<uint32_t> misses;
    ENGRAM_RETURN_IF_ERROR(tier_->CopyRows(0, row_ids, out, misses));
    if (misses.empty()) return absl::OkStatus();
    return WaitForRows([&](RowTier::OnRows done) {
      tier_->Fetch({.layer_index = 0,
                    .row_ids = row_ids,
                    .wanted = std::move(misses),
                    .out = out},
                   std::move(done));
    });
  }

  std::optional<CacheCounts> cache_counts() const override {
    const RowCache::Stats stats = cache_->stats();
    return CacheCounts{.hits = stats.hits, .misses = stats.misses};
  }

 private:
  Stack() = default;

  std::unique_ptr<HostTier> host_;
  std::unique_ptr<RowCache> cache_;
  std::unique_ptr<FlatStore> store_;
  std::unique_ptr<TierStack> tier_;  // last: it uses the others
};

}  // namespace

ColdKind ColdStack() { return {"stack", Prepare, Stack::Open}; }

}  // namespace engram::bench
