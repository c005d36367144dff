#ifndef ENGRAM_TABLE_SERVER_SERVER_H_
#define ENGRAM_TABLE_SERVER_SERVER_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/ids.h"
#include "table_server/loading/table_source.h"
#include "table_server/loading/tier_options.h"
#include "table_server/rebalance/hand_over.h"
#include "table_server/rebalance/pacer.h"
#include "table_server/service/service_limits.h"
#include "table_server/tier/row_tier.h"

namespace engram {

// A table server in one object: what main runs and what tests run in process.
// Listening and answering GetTable, health and WatchPartitions from Create on;
// ready once it is a member and every partition it owns is loaded and verified.
//
// Thread safety: all methods may be called concurrently.
class TableServer {
 public:
  struct Options {
    TableSourceOptions table;
    TierOptions tiers;

    std::string listen;        // host:port or unix:PATH
    std::string admin_listen;  // host:port; empty: no admin port
    std::string server_name;
    std::string members;  // as MemberSource has it; empty: this server alone
    uint32_t replicas = 1;
    std::vector<LayerId> layers;  // to serve; empty: all
    // Of a cluster that forms: nothing is placed before so many are there.
    uint32_t expected_servers = 0;
    // How long members must have stayed the same before they count; not of a
    // static list.
    absl::Duration stability_window = absl::Seconds(5);
    // How long a member that is silent, or that DNS has forgotten, is one.
    absl::Duration death_delay = absl::Minutes(5);
    absl::Duration exchange_interval = absl::Seconds(1);
    HandOver::Options hand_over;

    // While it loads what no other server holds; 0: one for each core, more for
    // a checkpoint by URL.
    size_t load_threads = 0;
    // While it loads what others hold too.
    size_t move_threads = 1;
    Pacer::Options move_pace{.time_share = 0.5};
    size_t rpc_threads = 0;     // 0: three quarters of the cores
    size_t worker_threads = 0;  // of gathers; 0: the rpc threads gather
    ServiceLimits limits;
    // When a drain begins: time for others to get what only this server holds,
    // then for clients to go elsewhere, then for calls under way to end.
    absl::Duration drain_hand_over = absl::Minutes(1);
    absl::Duration drain_grace = absl::Seconds(2);
    absl::Duration drain_calls = absl::Seconds(5);
    uint64_t available_memory_bytes = 0;  // 0: what the machine says
    std::FILE* progress_out = nullptr;    // null: no progress is shown
    // Wraps the tier that rows are gathered from; null: nothing does. Rows are
    // loaded and verified behind it.
    std::function<std::unique_ptr<RowTier>(std::unique_ptr<RowTier>)>
        decorate_tier;
  };

  // Checks everything that can be checked without reading rows, then listens
  // and starts to load. INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION: an
  // option, the checkpoint or the manifest, a local store that another server
  // uses. RESOURCE_EXHAUSTED: too little memory, or room on disk, for the share
  // of a static member, with the sums; members that change leave the server
  // unready instead. UNAVAILABLE: an address cannot be bound.
  static absl::StatusOr<std::unique_ptr<TableServer>> Create(Options options);
  virtual ~TableServer() = default;  // stops at once

  virtual const std::string& address() const = 0;
  virtual const std::string& admin_address() const = 0;  // empty: none
  virtual const std::string& version() const = 0;

  // OK: ready. DEADLINE_EXCEEDED, saying what is waited for: not yet.
  // FAILED_PRECONDITION, DATA_LOSS: a partition cannot be had as the manifest
  // wants it; the server goes on, not ready, and its owner should end it.
  virtual absl::Status WaitUntilReady(absl::Time deadline) = 0;

  // Ends in order: serves on until other servers hold what only this one does
  // (leaving the cluster for good where they would not by themselves), says
  // that it goes (health, watches) and serves on for drain_grace, then refuses
  // new calls with DRAINING and waits for those under way; last it stops
  // listening. Once; blocks.
  virtual void Drain() = 0;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVER_H_
