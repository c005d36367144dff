#include "engram_client/table_client.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "core/base/status_macros.h"
#include "core/membership/member_source.h"
#include "engram_client/rpc/grpc_table_transport.h"
#include "engram_client/table_client_impl.h"
#include "engram_client/table_client_options.h"

namespace engram {
namespace {

size_t PollThreads(const TableClient::Options& options) {
  if (options.poll_threads > 0) return options.poll_threads;
  return std::clamp<size_t>(std::thread::hardware_concurrency() / 4, 1, 4);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TableClient>> TableClient::Create(
    Options options) {
  // Before threads start.
  ENGRAM_RETURN_IF_ERROR(CheckOptions(options));
  std::shared_ptr<MemberSource> members;
  if (!options.members.empty()) {
    ENGRAM_ASSIGN_OR_RETURN(members, MemberSource::Parse(options.members));
  }
  // The transports keep them.
  const auto loops = std::make_shared<ClientLoops>(ClientLoops::Options{
      .loop_count = PollThreads(options), .spin = options.spin});
  return TableClientImpl::Create(
      std::move(options),
      [loops](const std::string& address) {
        return MakeGrpcTableTransport(address, loops);
      },
      std::move(members));
}

}  // namespace engram
