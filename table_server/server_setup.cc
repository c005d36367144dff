#include "table_server/server_setup.h"

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/numa.h"
#include "core/base/status_macros.h"
#include "table_server/rebalance/cluster_view.h"

namespace engram {
namespace {

constexpr absl::Duration kFirstLook = absl::Seconds(5);  // for the members

// A list that nobody changes: what is wrong with it can be told at once.
bool HasFixedMembers(const TableServer::Options& options) {
  return options.members.empty() ||
         absl::StartsWith(options.members, "static:");
}

// A core that is left to the kernel's network and to what else runs serves
// gathers better than another thread on it: gRPC has one poller, and what it
// finds for another's queue has to wake that.
size_t RpcThreads() {
  return std::max<size_t>(1, std::thread::hardware_concurrency() * 3 / 4);
}

}  // namespace

uint64_t DrawInstanceId() {
  constexpr int kRandomBits = 20;
  std::random_device device;
  const auto now_ms = static_cast<uint64_t>(absl::ToUnixMillis(absl::Now()));
  return now_ms << kRandomBits | device() >> (32 - kRandomBits);
}

absl::StatusOr<std::shared_ptr<MemberSource>> OpenMembers(
    const TableServer::Options& options) {
  ENGRAM_RETURN_IF_ERROR(CheckServerName(options.server_name));
  const std::string spec =
      options.members.empty()
          ? absl::StrCat("static:", options.server_name, "=", options.listen)
          : options.members;
  ENGRAM_ASSIGN_OR_RETURN(std::unique_ptr<MemberSource> source,
                          MemberSource::Parse(spec));
  return std::shared_ptr<MemberSource>(std::move(source));
}

absl::Status CheckShareFits(const TableServer::Options& options,
                            const Manifest& manifest, MemberSource& members,
                            PartitionStore& store) {
  if (options.replicas == 0) {
    return absl::InvalidArgumentError("0 replicas, the least is 1");
  }
  if (!HasFixedMembers(options)) return absl::OkStatus();
  ENGRAM_ASSIGN_OR_RETURN(std::vector<Member> list,
                          members.Read(absl::Now() + kFirstLook));
  ENGRAM_RETURN_IF_ERROR(CheckIsMember(list, options.server_name));
  ENGRAM_ASSIGN_OR_RETURN(
      const auto view,
      ClusterView::Create(manifest, {.self = options.server_name,
                                     .members = std::move(list),
                                     .replicas = options.replicas,
                                     .layers = options.layers}));
  return store.CheckFits(view->owned());
}

std::vector<QueueLoop::Options> QueuesOf(const TableServer::Options& options) {
  const size_t threads =
      options.rpc_threads > 0 ? options.rpc_threads : RpcThreads();
  const NumaTopology topology = ThisNumaTopology();
  const size_t node_count = topology.nodes.size();
  std::vector<QueueLoop::Options> queues(threads);
  for (size_t i = 0; i < queues.size(); ++i) {
    if (node_count > 1) queues[i].cpus = topology.nodes[i % node_count].cpus;
  }
  return queues;
}

Rebalancer::Options RebalanceOptions(const TableServer::Options& options,
                                     const MemberSource& members,
                                     uint64_t instance_id) {
  const absl::Duration window = HasFixedMembers(options)
                                    ? absl::ZeroDuration()
                                    : options.stability_window;
  return {
      .membership = {.self = options.server_name,
                     .self_instance_id = instance_id,
                     .expected_servers = options.expected_servers,
                     .stability_window = window,
                     .death_delay = options.death_delay,
                     .absence_is_departure = members.absence_is_departure()},
      .replicas = options.replicas,
      .layers = options.layers,
      .hand_over = options.hand_over,
      .loading = {.thread_count = options.load_threads,
                  .paced_thread_count = options.move_threads,
                  .pace = options.move_pace},
      .exchange_interval = options.exchange_interval};
}

}  // namespace engram
