#ifndef ENGRAM_COMPUTE_WORKER_WORKER_H_
#define ENGRAM_COMPUTE_WORKER_WORKER_H_

#include <prometheus/registry.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compute/block/create_block.h"
#include "compute/block/engram_block.h"
#include "compute/worker/metrics.h"
#include "compute/worker/remote_row_source.h"
#include "compute/worker/service.h"
#include "compute/worker/step_engine.h"
#include "compute/worker/tables_watch.h"
#include "core/base/mutex.h"
#include "core/base/notification.h"
#include "core/base/thread_pool.h"
#include "core/rpc/admin_server.h"
#include "core/rpc/rpc_server.h"
#include "engram_client/table_client.h"

namespace engram {

// A whole compute worker: composition root of this folder.
//
//   Start: checkpoint, token map, weights -> listening (GetModel, health)
//   in the background: table client -> every partition has a server -> ready
//   from then on: not ready while partitions have had no server for a second
//   Drain: health NOT_SERVING, drain_grace passes, steps end, server goes down
//
// Thread safety: all methods may be called concurrently; Drain once.
class Worker {
 public:
  struct Options {
    std::string checkpoint_dir;
    // Where the table servers are: one of both, as in TableClient::Options.
    std::vector<std::string> table_addresses;
    std::string table_members;
    std::string listen;  // host:port or unix:PATH
    // As in TableClient::Options.
    uint64_t row_cache_bytes = 0;
    bool want_crc32c = false;
    std::string token_map_path;  // empty: engram_token_map.bin beside config
    std::string worker_name;     // empty: the host's name
    std::string admin;           // host:port of /metrics, empty: none
    size_t compute_threads = 0;  // 0: one for each core
    BlockRequest compute;        // on which device, and how
    // Of the first try to reach table servers; each further one gets longer.
    absl::Duration connect_timeout = absl::Seconds(2);
    uint64_t max_tokens_per_step = 4096;
    absl::Duration step_timeout = absl::Seconds(60);
    // After a drain began: time for callers to go elsewhere.
    absl::Duration drain_grace = absl::Seconds(2);
  };

  // Listening when it returns. INVALID_ARGUMENT, NOT_FOUND: checkpoint, token
  // map or manifest; FAILED_PRECONDITION: the manifest is of another
  // checkpoint; UNAVAILABLE: an address cannot be bound; the errors of
  // CreateEngramBlock.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(Options options);
  ~Worker();

  const std::string& address() const { return rpc_server_->address(); }
  // Empty without an admin port.
  std::string admin_address() const;
  const std::string& version() const { return engine_->options().version; }

  // OK: it has begun to take steps. DEADLINE_EXCEEDED: not yet.
  // FAILED_PRECONDITION: never will: all of `table_addresses` are servers of
  // another version (the message names both); servers that are found as members
  // may be replaced, and are waited for. UNAVAILABLE: the device has failed
  // meanwhile.
  absl::Status WaitUntilReady(absl::Time deadline);

  // UNAVAILABLE: the device has failed; only a new process can use it again.
  absl::Status health() const { return block_->health(); }

  // Leaves in order: health says so and steps are taken on for drain_grace;
  // then no new ones, and those in flight may end until `deadline`. Blocks.
  void Drain(absl::Time deadline);

 private:
  explicit Worker(Options options);

  absl::Status Load();
  absl::Status CreateBlock(const Checkpoint& checkpoint);
  absl::Status Listen();
  // The background thread: until ready, failed or stopping.
  void Connect();
  absl::Status ConnectTables();
  bool MayBeReplaced(const absl::Status& refused) const;
  absl::Status CheckTables(const TableInfo& table) const;
  absl::Status AwaitPartitions();
  // The thread that looks after steps, block and tables all the time.
  void TickUntilStopped();
  void ObserveTables();
  void SetServing();
  std::string NotReadyReason() const;
  // Tables are waited for no more; nothing says that it serves after this.
  void StopConnecting();
  bool leaving() const { return leaving_.HasBeenNotified(); }

  const Options options_;
  const std::shared_ptr<prometheus::Registry> registry_;
  WorkerMetrics metrics_;
  ThreadPool compute_pool_;
  std::unique_ptr<const EngramBlock> block_;
  // Made by the background thread before the engine gets them.
  std::unique_ptr<TableClient> table_client_;
  std::unique_ptr<RemoteRowSource> row_source_;
  std::unique_ptr<StepEngine> engine_;
  std::unique_ptr<ComputeServiceImpl> service_;
  std::unique_ptr<RpcServer> rpc_server_;
  std::unique_ptr<AdminServer> admin_server_;

  Notification leaving_;    // a drain began, or the end
  Notification stopping_;   // steps need not be expired any more
  Notification connected_;  // connect_status_ is final
  mutable Mutex mutex_;
  absl::Status connect_status_ ABSL_GUARDED_BY(mutex_);
  TablesWatch tables_watch_;  // the tick thread's
  std::thread connect_thread_;
  std::thread tick_thread_;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_WORKER_H_
