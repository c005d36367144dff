#ifndef ENGRAM_TABLE_SERVER_SERVICE_WATCH_STREAM_H_
#define ENGRAM_TABLE_SERVER_SERVICE_WATCH_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "core/base/mutex.h"
#include "engram/v1/table.pb.h"
#include "table_server/partitions/partition_set.h"
#include "table_server/service/live_set.h"
#include "table_server/service/service_context.h"

namespace engram {

// One WatchPartitions: a snapshot, then whatever changed since the message
// before, in one delta however much it is. So a slow watcher costs no memory.
class WatchStream final
    : public grpc::ServerWriteReactor<v1::WatchPartitionsResponse>,
      public PartitionSet::Listener,
      public Stoppable,
      public std::enable_shared_from_this<WatchStream> {
 public:
  using Reactor = grpc::ServerWriteReactor<v1::WatchPartitionsResponse>;

  static Reactor* Start(ServiceContext& service);

  void OnPartitionsChanged() override { Advance(); }
  // The watch ends once it has told what there is to tell.
  void Stop() override;

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  enum class State { kIdle, kWriting, kFinished };

  explicit WatchStream(ServiceContext& service) : service_(service) {}

  void End(const absl::Status& status);
  // Starts the next message or the end, unless a message is under way.
  void Advance();
  // Fills message_ with what there is to tell; false: nothing.
  bool MakeMessage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeSnapshot() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ServiceContext& service_;
  std::shared_ptr<WatchStream> self_;    // until OnDone
  v1::WatchPartitionsResponse message_;  // owned by the write under way

  Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kIdle;
  bool has_snapshot_ ABSL_GUARDED_BY(mutex_) = false;
  bool told_draining_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t position_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  // Of an ending watch: a message goes before the end.
  bool tell_first_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status final_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_WATCH_STREAM_H_
