#ifndef ENGRAM_ENGRAM_CLIENT_RPC_FAKE_TABLE_SERVER_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_FAKE_TABLE_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/base/mutex.h"
#include "core/base/thread_pool.h"
#include "engram/v1/table.pb.h"
#include "engram_client/rpc/table_transport.h"
#include "engram_client/table_client.h"

namespace engram {

// The table that fakes serve: layers 1 and 14, rows that are a function of
// (layer, row), so that any slot of any gather can be checked.
struct FakeTable {
  std::string version = "table-a";
  uint64_t partition_rows = 16;
  uint64_t row_count = 1000;  // of each layer
  static constexpr uint32_t kWidth = 32;
  static constexpr size_t kRowBytes = kWidth + 1;

  uint32_t partition_count() const {
    return static_cast<uint32_t>((row_count - 1) / partition_rows + 1);
  }
  v1::GetTableResponse Response(const std::string& server_name,
                                uint64_t instance_id) const;
  static void WriteRow(LayerId layer, RowId row, std::byte* out);
};

// A table server without a network, for tests of the client. It may be down
// or slow, hold any partitions, lose them, and fail any call.
//
// Thread safety: all methods may be called concurrently. Transports must be
// destroyed first.
class FakeTableServer {
 public:
  // One gather as it arrives.
  struct Gather {
    std::string version;
    std::vector<std::pair<LayerId, RowId>> rows;
    absl::Time deadline;
  };
  // OK: answer with rows. Called on the server's thread.
  using GatherHook = std::function<absl::Status(const Gather&)>;

  FakeTableServer(std::string name, FakeTable table, uint64_t instance_id = 1);
  ~FakeTableServer();

  std::unique_ptr<TableTransport> Connect();

  // Down: calls fail with UNAVAILABLE, watches end.
  void SetUp(bool up);
  void Restart(uint64_t instance_id);
  // Announced to the watchers; `told` false changes only what the server has.
  void HoldAll();
  void Add(LayerId layer, std::vector<uint32_t> partitions);
  void Remove(LayerId layer, std::vector<uint32_t> partitions,
              bool told = true);
  void Drain();
  void OnGather(GatherHook hook);
  // Sends this to the watchers as it is.
  void SendToWatchers(const v1::WatchPartitionsResponse& message);

  // Swallowed: gathers get no answer until they are cancelled or Release.
  void SwallowGathers(bool swallow);
  void ReleaseSwallowed();

  uint64_t warm_ups() const;
  uint64_t gathers_started() const;
  uint64_t gathers_cancelled() const;
  uint64_t gathers_open() const;

 private:
  class Transport;
  struct Call;
  using CallPtr = std::shared_ptr<Call>;

  CallPtr StartCall(std::function<void(absl::Status)> done);
  void Finish(const CallPtr& call, absl::Status status);
  void Answer(const CallPtr& call, const Gather& gather, RowSink& sink);
  absl::Status CheckHeld(const Gather& gather) const;
  v1::WatchPartitionsResponse Snapshot() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Change(v1::WatchPartitionsResponse delta, bool told)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Post(absl::AnyInvocable<void()> task);

  const std::string name_;
  const FakeTable table_;

  mutable Mutex mutex_;
  bool up_ ABSL_GUARDED_BY(mutex_) = true;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool swallow_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t instance_id_ ABSL_GUARDED_BY(mutex_);
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 1;
  std::set<std::pair<uint32_t, uint32_t>> held_ ABSL_GUARDED_BY(mutex_);
  GatherHook hook_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<CallPtr, TableTransport::WatchEvent>> watchers_
      ABSL_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> swallowed_ ABSL_GUARDED_BY(mutex_);
  uint64_t warm_ups_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t gathers_started_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t gathers_cancelled_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t gathers_open_ ABSL_GUARDED_BY(mutex_) = 0;

  ThreadPool thread_{{.thread_count = 1}};  // all callbacks; ends first
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_FAKE_TABLE_SERVER_H_
