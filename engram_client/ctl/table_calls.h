#ifndef ENGRAM_ENGRAM_CLIENT_CTL_TABLE_CALLS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_TABLE_CALLS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engram/v1/table.grpc.pb.h"

namespace engram::ctl {

// One table server and the calls of it that a tool makes. Each blocks, at most
// until its deadline; errors are those of the call.
class TableCalls {
 public:
  explicit TableCalls(const std::string& address);

  absl::StatusOr<v1::GetTableResponse> GetTable(absl::Time deadline);
  // The first message of WatchPartitions; then the watch is dropped.
  absl::StatusOr<v1::WatchPartitionsResponse::Snapshot> Snapshot(
      absl::Time deadline);
  // Looks, without being a server. UNIMPLEMENTED: a server of an older release.
  absl::StatusOr<v1::ExchangeResponse> Exchange(absl::Time deadline);
  absl::Status Leave(const std::string& server_name, absl::Time deadline);

 private:
  const std::unique_ptr<v1::TableService::Stub> stub_;
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_TABLE_CALLS_H_
