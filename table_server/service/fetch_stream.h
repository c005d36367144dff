#ifndef ENGRAM_TABLE_SERVER_SERVICE_FETCH_STREAM_H_
#define ENGRAM_TABLE_SERVER_SERVICE_FETCH_STREAM_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/rpc/queue_calls.h"
#include "engram/v1/table.pb.h"
#include "table_server/gather/partition_reader.h"
#include "table_server/service/call_source.h"
#include "table_server/service/live_set.h"
#include "table_server/service/service_context.h"
#include "table_server/service/stall_watch.h"

namespace engram {

// One FetchPartition: rows in pieces, the next of which is copied, or fetched,
// while one is sent. Copies wait until no event does, or run on the workers:
// gathers go first.
class FetchStream final
    : public WriteStream<v1::FetchPartitionRequest, v1::FetchPartitionResponse>,
      public Stoppable,
      public std::enable_shared_from_this<FetchStream> {
 public:
  // Asks gRPC for the next fetch of `source`; that one asks for the next.
  static void Await(const CallSource& source);

  // The fetch ends; the peer goes on elsewhere.
  void Stop() override;
  // Cancels a fetch whose peer takes nothing.
  void Expire() override;

 private:
  explicit FetchStream(const CallSource& source);

  void Begin() override;
  bool MakeMessage(v1::FetchPartitionResponse& message) override;
  void BeforeWrite(const v1::FetchPartitionResponse& message) override;
  void OnEnded(const grpc::Status& status) override;

  absl::Status Admit();
  void ScheduleCopy();
  void CopyPiece();
  static void OnRows(std::shared_ptr<FetchStream> self, absl::Status status);
  void PieceIsThere(const absl::Status& status);
  void EndWith(const absl::Status& status);
  // Of the call and of rows that are being fetched: the last gives the place
  // among the fetches to another.
  void LeavePlace();

  const CallSource source_;
  ServiceContext& service_;
  StallWatch stall_;
  std::atomic<bool> ended_{false};
  std::atomic<int> uses_of_place_{1};

  // Of whoever copies or, once `copied_`, of whoever makes the message.
  RowRange range_;
  std::string rows_;
  std::atomic<bool> copied_{false};
  // Of whoever fetched rows, then of whoever goes on with them.
  absl::Status fetched_;
  std::shared_ptr<FetchStream> self_while_fetching_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_FETCH_STREAM_H_
