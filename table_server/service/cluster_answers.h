#ifndef ENGRAM_TABLE_SERVER_SERVICE_CLUSTER_ANSWERS_H_
#define ENGRAM_TABLE_SERVER_SERVICE_CLUSTER_ANSWERS_H_

#include "absl/status/status.h"
#include "engram/v1/table.pb.h"
#include "table_server/service/service_context.h"

namespace engram {

// Exchange: checks the request, says what the service knows itself, and leaves
// the rest to the server's part in the cluster, if it has one.
absl::Status AnswerExchange(const ServiceContext& service, bool ready,
                            const v1::ExchangeRequest& request,
                            v1::ExchangeResponse& response);

// Leave. UNIMPLEMENTED: the server is in no cluster.
absl::Status AnswerLeave(const ServiceContext& service,
                         const v1::LeaveRequest& request);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_CLUSTER_ANSWERS_H_
