#ifndef ENGRAM_ENGRAM_CLIENT_RPC_GATHER_STATUS_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_GATHER_STATUS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "engram_client/rpc/calls_in_flight.h"
#include "engram_client/rpc/gather_queue.h"

namespace engram {

// What a gather says when it fails: which rows of which table did not come,
// and from whom.
struct GatherNames {
  absl::string_view version;
  absl::Span<const LayerId> layer_ids;  // of the gather's layers
};

// Calls of one gather that failed and were tried again. The first says why, the
// last how it stands; in between there may be thousands.
class FailedTries {
 public:
  // `failure`: made by CallStatus.
  void Note(const absl::Status& failure);
  bool any() const { return !first_.ok(); }
  // "first failure: DATA_LOSS: ...; last failure: OVERLOADED: ...", or nothing.
  std::string Text() const;
  // `end`, which the last one came to, with what began it.
  absl::Status WithFirst(const absl::Status& end) const;

 private:
  absl::Status first_;
  absl::Status last_;
};

// `status` of a call, with what it asked for and whom.
absl::Status CallStatus(const GatherNames& names, const GatherCall& call,
                        const absl::Status& status);

// DEADLINE_EXCEEDED. `problems`: of servers that are not connected.
absl::Status DeadlineStatus(const GatherNames& names, const GatherQueue& queue,
                            const CallsInFlight& in_flight,
                            const FailedTries& failed,
                            const std::string& problems);

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_GATHER_STATUS_H_
