#ifndef ENGRAM_TABLE_SERVER_SERVICE_WATCH_STREAM_H_
#define ENGRAM_TABLE_SERVER_SERVICE_WATCH_STREAM_H_

#include <cstdint>
#include <memory>

#include "core/rpc/queue_calls.h"
#include "engram/v1/table.pb.h"
#include "table_server/partitions/partition_set.h"
#include "table_server/service/call_source.h"
#include "table_server/service/live_set.h"
#include "table_server/service/service_context.h"

namespace engram {

// One WatchPartitions: a snapshot, then whatever changed since the message
// before, in one delta however much it is. So a slow watcher costs no memory.
class WatchStream final : public WriteStream<v1::WatchPartitionsRequest,
                                             v1::WatchPartitionsResponse>,
                          public PartitionSet::Listener,
                          public Stoppable,
                          public std::enable_shared_from_this<WatchStream> {
 public:
  // Asks gRPC for the next watch of `source`; that one asks for the next.
  static void Await(const CallSource& source);

  void OnPartitionsChanged() override { Advance(); }
  // The watch ends once it has told what there is to tell.
  void Stop() override;

 private:
  explicit WatchStream(const CallSource& source);

  void Begin() override;
  bool MakeMessage(v1::WatchPartitionsResponse& message) override;
  void MakeSnapshot(v1::WatchPartitionsResponse& message);
  void OnEnded(const grpc::Status& status) override;

  const CallSource source_;
  ServiceContext& service_;

  // Of whoever makes the message.
  bool has_snapshot_ = false;
  bool told_draining_ = false;
  uint64_t position_ = 0;
  uint64_t epoch_ = 0;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_WATCH_STREAM_H_
