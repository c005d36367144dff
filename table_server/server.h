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
#include "table_server/service/service_limits.h"
#include "table_server/tier/row_tier.h"

namespace engram {

// A table server in one object: what main runs and what tests run in process.
// Listening and answering GetTable, health and WatchPartitions from Create on;
// ready once every partition it owns is loaded and verified.
//
// Thread safety: all methods may be called concurrently.
class TableServer {
 public:
  struct Options {
    std::string checkpoint_dir;
    std::string source = "checkpoint";  // or "synthetic:SEED"
    // Configuration of a synthetic table: one of these, or checkpoint_dir's.
    std::string config_path;
    std::string preset;

    std::string listen;        // host:port or unix:PATH
    std::string admin_listen;  // host:port; empty: no admin port
    std::string server_name;
    std::string members;  // "static:..."; empty: this server alone
    uint32_t replicas = 1;
    std::vector<LayerId> layers;  // to serve; empty: all

    size_t load_threads = 0;    // 0: one for each core
    size_t rpc_threads = 0;     // 0: one for each core
    size_t worker_threads = 0;  // of gathers; 0: the rpc threads gather
    ServiceLimits limits;
    // After a drain began: time for clients to go elsewhere, then for calls
    // under way to end.
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
  // option, the checkpoint or the manifest. RESOURCE_EXHAUSTED: too little
  // memory, with the sums. UNAVAILABLE: an address cannot be bound.
  static absl::StatusOr<std::unique_ptr<TableServer>> Create(Options options);
  virtual ~TableServer() = default;  // stops at once

  virtual const std::string& address() const = 0;
  virtual const std::string& admin_address() const = 0;  // empty: none
  virtual const std::string& version() const = 0;

  // Waits for the end of loading. OK: ready. DEADLINE_EXCEEDED: still loading.
  // Else why loading failed: the server goes on, never ready, and its owner
  // should end it.
  virtual absl::Status WaitUntilReady(absl::Time deadline) = 0;

  // Leaves in order: says so (health, watches) and serves on for drain_grace,
  // then refuses new calls with DRAINING and waits for those under way; last
  // it stops listening. Once; blocks.
  virtual void Drain() = 0;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVER_H_
