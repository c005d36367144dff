#ifndef ENGRAM_TABLE_SERVER_SERVICE_CALL_SOURCE_H_
#define ENGRAM_TABLE_SERVER_SERVICE_CALL_SOURCE_H_

#include <grpcpp/completion_queue.h>

#include "core/rpc/queue_loop.h"
#include "engram/v1/table.grpc.pb.h"
#include "table_server/service/service_context.h"

namespace engram {

// Everything comes from completion queues, gathers raw: their replies are
// serialised around the rows.
using TableRpc = v1::TableService::WithRawMethod_Gather<
    v1::TableService::WithRawMethod_GatherStream<
        v1::TableService::WithAsyncMethod_GetTable<
            v1::TableService::WithAsyncMethod_WatchPartitions<
                v1::TableService::WithAsyncMethod_FetchPartition<
                    v1::TableService::WithAsyncMethod_RecordHeat<
                        v1::TableService::WithAsyncMethod_Exchange<
                            v1::TableService::WithAsyncMethod_Leave<
                                v1::TableService::Service>>>>>>>>;

// Where calls come from and on whose threads they are served. All outlive the
// calls, for each call has a copy, and that holds the queue.
struct CallSource {
  TableRpc* rpc;
  ServiceContext* service;
  QueueLoop* loop;
  grpc::ServerCompletionQueue* queue;  // the loop's
  QueueLoop::Hold hold{*loop};
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_CALL_SOURCE_H_
