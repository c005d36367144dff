#ifndef ENGRAM_TABLE_SERVER_SERVICE_CLUSTER_CALLS_H_
#define ENGRAM_TABLE_SERVER_SERVICE_CLUSTER_CALLS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "engram/v1/table.pb.h"

namespace engram {

// What a server's part in the cluster answers to the other servers and to
// tools.
//
// Thread safety: all methods may be called concurrently. They must not block:
// they run on threads that gather too.
class ClusterCalls {
 public:
  virtual ~ClusterCalls() = default;

  // `request` is of this table, its names and departures are well-formed and
  // within the limits; `to_free` are the partitions of request.to_free(),
  // ascending. `response` says already who the server is, what it holds, and
  // whether it is ready and draining; the rest is to be filled.
  virtual absl::Status Exchange(const v1::ExchangeRequest& request,
                                absl::Span<const PartitionRef> to_free,
                                v1::ExchangeResponse& response) = 0;

  // `request` names this server.
  virtual absl::Status Leave(const v1::LeaveRequest& request) = 0;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_CLUSTER_CALLS_H_
