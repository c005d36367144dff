#include "engram_client/ctl/status_probe.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/thread_pool.h"
#include "core/rpc/channel.h"
#include "core/wire/error_detail.h"
#include "engram/v1/compute.grpc.pb.h"
#include "engram/v1/table.grpc.pb.h"

namespace engram::ctl {
namespace {

constexpr size_t kMaxThreads = 64;
// V4.1 has 11,720 over both layers. What a server claims above this is not
// believed, so that it cannot make this tool allocate without end.
constexpr uint32_t kMaxPartitions = 1 << 24;

void SetDeadline(grpc::ClientContext& context, absl::Time deadline) {
  context.set_deadline(absl::ToChronoTime(deadline));
}

absl::StatusOr<v1::GetTableResponse> GetTable(v1::TableService::Stub& stub,
                                              absl::Time deadline) {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  v1::GetTableResponse response;
  ENGRAM_RETURN_IF_ERROR(
      FromGrpcStatus(stub.GetTable(&context, {}, &response)));
  return response;
}

// The first message of WatchPartitions; then the watch is dropped.
absl::StatusOr<v1::WatchPartitionsResponse::Snapshot> GetSnapshot(
    v1::TableService::Stub& stub, absl::Time deadline) {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  const auto reader = stub.WatchPartitions(&context, {});
  v1::WatchPartitionsResponse response;
  if (!reader->Read(&response)) {
    const absl::Status status = FromGrpcStatus(reader->Finish());
    if (!status.ok()) return status;
    return absl::InternalError("the server ended the watch of its partitions");
  }
  context.TryCancel();
  v1::WatchPartitionsResponse rest;
  while (reader->Read(&rest)) {
  }
  reader->Finish();
  if (!response.has_snapshot()) {
    return absl::InternalError(
        "the watch of partitions did not begin with a snapshot");
  }
  return std::move(*response.mutable_snapshot());
}

absl::Status Probe(ServerProbe& probe, absl::Time deadline) {
  const auto stub = v1::TableService::NewStub(MakeChannel(probe.address));
  ENGRAM_ASSIGN_OR_RETURN(const v1::GetTableResponse table,
                          GetTable(*stub, deadline));
  ENGRAM_ASSIGN_OR_RETURN(const v1::WatchPartitionsResponse::Snapshot snapshot,
                          GetSnapshot(*stub, deadline));
  ENGRAM_ASSIGN_OR_RETURN(probe.layers, HeldPartitions(table, snapshot));
  probe.name = table.server_name();
  probe.version = table.version();
  probe.instance_id = table.instance_id();
  probe.ready = table.ready();
  probe.draining = snapshot.draining();
  return absl::OkStatus();
}

absl::Status Probe(WorkerProbe& probe, absl::Time deadline) {
  const auto stub = v1::ComputeService::NewStub(MakeChannel(probe.address));
  grpc::ClientContext context;
  SetDeadline(context, deadline);
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

}  // namespace

std::vector<ServerProbe> ProbeServers(const std::vector<std::string>& addresses,
                                      absl::Time deadline) {
  return ProbeAll<ServerProbe>(addresses, deadline);
}

std::vector<WorkerProbe> ProbeWorkers(const std::vector<std::string>& addresses,
                                      absl::Time deadline) {
  return ProbeAll<WorkerProbe>(addresses, deadline);
}

absl::StatusOr<std::vector<ServerProbe::Layer>> HeldPartitions(
    const v1::GetTableResponse& table,
    const v1::WatchPartitionsResponse::Snapshot& snapshot) {
  std::vector<ServerProbe::Layer> layers;
  std::map<uint32_t, size_t> index_of;
  for (const v1::LayerInfo& layer : table.layers()) {
    if (layer.partition_count() > kMaxPartitions) {
      return absl::InvalidArgumentError(absl::StrCat(
          "layer ", layer.layer_id(), " has ", layer.partition_count(),
          " partitions, the limit is ", kMaxPartitions));
    }
    index_of[layer.layer_id()] = layers.size();
    layers.push_back(
        {layer.layer_id(), std::vector<bool>(layer.partition_count())});
  }
  for (const v1::LayerPartitions& held : snapshot.layers()) {
    const auto found = index_of.find(held.layer_id());
    if (found == index_of.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the server holds partitions of layer ", held.layer_id(),
                       ", which its table does not have"));
    }
    std::vector<bool>& bits = layers[found->second].held;
    if (held.bitmap().size() != (bits.size() + 7) / 8) {
      return absl::InvalidArgumentError(
          absl::StrCat("a bitmap of ", held.bitmap().size(), " bytes for the ",
                       bits.size(), " partitions of layer ", held.layer_id()));
    }
    for (size_t p = 0; p < bits.size(); ++p) {
      const auto byte = static_cast<uint8_t>(held.bitmap()[p / 8]);
      bits[p] = ((byte >> (p % 8)) & 1) != 0;
    }
  }
  return layers;
}

}  // namespace engram::ctl
