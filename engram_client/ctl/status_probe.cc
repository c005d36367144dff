#include "engram_client/ctl/status_probe.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/base/thread_pool.h"
#include "core/rpc/channel.h"
#include "core/wire/error_detail.h"
#include "engram/v1/compute.grpc.pb.h"
#include "engram_client/ctl/cluster_views.h"
#include "engram_client/ctl/table_calls.h"

namespace engram::ctl {
namespace {

constexpr size_t kMaxThreads = 64;
constexpr int kMaxRounds = 4;
// V4.1 has 11,720 over both layers. What a server claims above this is not
// believed, so that it cannot make this tool allocate without end.
constexpr uint32_t kMaxPartitions = 1 << 24;

// A server of an older release has no Exchange.
absl::Status ReadWatch(TableCalls& server, absl::Time deadline,
                       const v1::GetTableResponse& table, ServerProbe& probe) {
  ENGRAM_ASSIGN_OR_RETURN(const v1::WatchPartitionsResponse::Snapshot snapshot,
                          server.Snapshot(deadline));
  ENGRAM_ASSIGN_OR_RETURN(probe.layers,
                          HeldPartitions(table, snapshot.layers()));
  probe.draining = snapshot.draining();
  return absl::OkStatus();
}

absl::Status Probe(ServerProbe& probe, absl::Time deadline) {
  TableCalls server(probe.address);
  ENGRAM_ASSIGN_OR_RETURN(const v1::GetTableResponse table,
                          server.GetTable(deadline));
  absl::StatusOr<v1::ExchangeResponse> exchange = server.Exchange(deadline);
  if (absl::IsUnimplemented(exchange.status())) {
    ENGRAM_RETURN_IF_ERROR(ReadWatch(server, deadline, table, probe));
  } else {
    ENGRAM_RETURN_IF_ERROR(exchange.status());
    ENGRAM_ASSIGN_OR_RETURN(probe.layers,
                            HeldPartitions(table, exchange->held()));
    probe.draining = exchange->draining();
    probe.exchange = *std::move(exchange);
  }
  probe.name = table.server_name();
  probe.version = table.version();
  probe.instance_id = table.instance_id();
  probe.ready = table.ready();
  return absl::OkStatus();
}

absl::Status Probe(WorkerProbe& probe, absl::Time deadline) {
  const auto stub = v1::ComputeService::NewStub(MakeChannel(probe.address));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(deadline));
  v1::GetModelResponse model;
  ENGRAM_RETURN_IF_ERROR(FromGrpcStatus(stub->GetModel(&context, {}, &model)));
  probe.name = model.worker_name();
  probe.version = model.version();
  probe.ready = model.ready();
  probe.layer_ids.assign(model.layer_ids().begin(), model.layer_ids().end());
  return absl::OkStatus();
}

template <typename T>
std::vector<T> ProbeAll(const std::vector<std::string>& addresses,
                        absl::Time deadline) {
  std::vector<T> probes(addresses.size());
  if (probes.empty()) return probes;
  ThreadPool pool({.thread_count = std::min(addresses.size(), kMaxThreads)});
  pool.ParallelFor(addresses.size(), [&](size_t i) {
    probes[i].address = addresses[i];
    const absl::Status status = Probe(probes[i], deadline);
    if (!status.ok()) probes[i].error = std::string(status.message());
    if (!status.ok() && probes[i].error.empty()) {
      probes[i].error = absl::StatusCodeToString(status.code());
    }
  });
  return probes;
}

// Adds those that are no server under another address, and no former address
// of one.
void AddFound(std::vector<ServerProbe> answers,
              std::vector<ServerProbe>& servers) {
  for (ServerProbe& answer : answers) {
    const bool known = std::any_of(
        servers.begin(), servers.end(), [&](const ServerProbe& server) {
          if (!server.error.empty()) return false;
          return answer.error.empty() ? server.instance_id == answer.instance_id
                                      : server.name == answer.name;
        });
    if (!known) servers.push_back(std::move(answer));
  }
}

std::vector<ServerProbe> AskFound(const std::vector<Member>& found,
                                  absl::Time deadline) {
  std::vector<std::string> addresses;
  for (const Member& member : found) addresses.push_back(member.address);
  std::vector<ServerProbe> answers = ProbeServers(addresses, deadline);
  for (size_t i = 0; i < found.size(); ++i) {
    answers[i].found = true;
    if (!answers[i].error.empty()) answers[i].name = found[i].name;
  }
  return answers;
}

// Found in an earlier look and not in this one.
std::vector<Member> FoundBefore(absl::Span<const ServerProbe> before,
                                const std::vector<ServerProbe>& servers) {
  std::vector<Member> found;
  for (const ServerProbe& server : before) {
    const bool asked = std::any_of(
        servers.begin(), servers.end(), [&](const ServerProbe& other) {
          return other.address == server.address || other.name == server.name;
        });
    if (!server.found || !server.error.empty() || asked) continue;
    found.push_back({server.name, server.address});
  }
  return found;
}

}  // namespace

std::vector<ServerProbe> ProbeServers(const std::vector<std::string>& addresses,
                                      absl::Time deadline) {
  return ProbeAll<ServerProbe>(addresses, deadline);
}

std::vector<WorkerProbe> ProbeWorkers(const std::vector<std::string>& addresses,
                                      absl::Time deadline) {
  return ProbeAll<WorkerProbe>(addresses, deadline);
}

std::vector<ServerProbe> ProbeCluster(const std::vector<std::string>& addresses,
                                      absl::Duration timeout,
                                      absl::Span<const ServerProbe> before) {
  std::vector<ServerProbe> servers =
      ProbeServers(addresses, absl::Now() + timeout);
  for (int round = 0; round < kMaxRounds; ++round) {
    const std::vector<Member> found = MembersNotAsked(servers, kMaxMembers);
    if (found.empty()) break;
    AddFound(AskFound(found, absl::Now() + timeout), servers);
  }
  std::vector<ServerProbe> others =
      AskFound(FoundBefore(before, servers), absl::Now() + timeout);
  std::erase_if(others, [](const auto& other) { return !other.error.empty(); });
  AddFound(std::move(others), servers);
  NameUnreachable(servers);
  return servers;
}

absl::StatusOr<std::vector<ServerProbe::Layer>> HeldPartitions(
    const v1::GetTableResponse& table, const LayerPartitionsList& held) {
  std::vector<LayerPartitionCount> counts;
  std::vector<ServerProbe::Layer> layers;
  for (const v1::LayerInfo& layer : table.layers()) {
    if (layer.partition_count() > kMaxPartitions) {
      return absl::InvalidArgumentError(absl::StrCat(
          "layer ", layer.layer_id(), " has ", layer.partition_count(),
          " partitions, the limit is ", kMaxPartitions));
    }
    counts.emplace_back(LayerId{layer.layer_id()}, layer.partition_count());
    layers.push_back(
        {layer.layer_id(), std::vector<bool>(layer.partition_count())});
  }
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<PartitionRef> refs,
                          FromLayerPartitions(held, counts));
  for (const PartitionRef& ref : refs) {
    const auto layer = std::find_if(layers.begin(), layers.end(),
                                    [&](const ServerProbe::Layer& l) {
                                      return l.layer_id == ToInt(ref.layer);
                                    });
    layer->held[ToInt(ref.partition)] = true;
  }
  return layers;
}

}  // namespace engram::ctl
