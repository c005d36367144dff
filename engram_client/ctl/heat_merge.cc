#include "engram_client/ctl/heat_merge.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/heat_hash.h"
#include "engram_client/ctl/format.h"

namespace engram::ctl {
namespace {

using Counts = absl::flat_hash_map<uint64_t, uint64_t>;

std::vector<RowHeat> MostFirst(const Counts& counts) {
  std::vector<RowHeat> rows;
  rows.reserve(counts.size());
  for (const auto& [key, lookups] : counts) {
    if (lookups > 0) rows.push_back({key, lookups});
  }
  std::sort(rows.begin(), rows.end(), [](const RowHeat& a, const RowHeat& b) {
    return std::pair(b.lookups, a.key) < std::pair(a.lookups, b.key);
  });
  return rows;
}

bool SameLayout(const ServerHeat& a, const ServerHeat& b) {
  return a.row_bytes == b.row_bytes &&
         std::equal(
             a.layers.begin(), a.layers.end(), b.layers.begin(), b.layers.end(),
             [](const LayerHeat& x, const LayerHeat& y) {
               return x.layer_id == y.layer_id && x.row_count == y.row_count &&
                      x.partition_lookups.size() == y.partition_lookups.size();
             });
}

absl::Status CheckCanBeMerged(absl::Span<const ServerHeat* const> servers) {
  if (servers.empty()) {
    return absl::FailedPreconditionError("no server recorded anything");
  }
  std::vector<HeatServer> identities;
  for (const ServerHeat* server : servers) {
    identities.push_back(
        {server->address, server->version, server->instance_id});
  }
  ENGRAM_RETURN_IF_ERROR(CheckAlike(identities));
  for (const ServerHeat* server : servers) {
    if (SameLayout(*server, *servers[0])) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        servers[0]->address, " and ", server->address,
        " tell of different layouts of table ", ShortVersion(server->version)));
  }
  return absl::OkStatus();
}

void AddPartitions(const ServerHeat& server, ClusterHeat& cluster) {
  for (size_t i = 0; i < cluster.layers.size(); ++i) {
    const std::vector<uint64_t>& from = server.layers[i].partition_lookups;
    std::vector<uint64_t>& to = cluster.layers[i].partition_lookups;
    std::transform(from.begin(), from.end(), to.begin(), to.begin(),
                   std::plus<>());
  }
}

}  // namespace

absl::Status CheckAlike(absl::Span<const HeatServer> servers) {
  absl::flat_hash_map<uint64_t, const HeatServer*> instances;
  for (const HeatServer& server : servers) {
    if (server.version != servers[0].version) {
      return absl::FailedPreconditionError(
          absl::StrCat("servers of different tables: ", servers[0].address,
                       " serves ", ShortVersion(servers[0].version), ", ",
                       server.address, " ", ShortVersion(server.version),
                       ": give those of one table by --only-these"));
    }
    const auto [other, is_new] =
        instances.try_emplace(server.instance_id, &server);
    if (!is_new) {
      return absl::FailedPreconditionError(absl::StrCat(
          other->second->address, " and ", server.address, " are one server"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ClusterHeat> MergeHeat(absl::Span<const ServerHeat> servers) {
  std::vector<const ServerHeat*> counted;
  for (const ServerHeat& server : servers) {
    if (server.error.empty()) counted.push_back(&server);
  }
  ENGRAM_RETURN_IF_ERROR(CheckCanBeMerged(counted));
  ClusterHeat cluster{.version = counted[0]->version,
                      .row_bytes = counted[0]->row_bytes,
                      .layers = counted[0]->layers,
                      .last_hash = counted[0]->last_hash};
  for (LayerHeat& layer : cluster.layers) {
    cluster.rows += layer.row_count;
    std::fill(layer.partition_lookups.begin(), layer.partition_lookups.end(),
              0);
  }
  Counts hot;
  for (const ServerHeat* server : counted) {
    AddPartitions(*server, cluster);
    cluster.lookups += server->lookups();
    cluster.last_hash = std::min(cluster.last_hash, server->last_hash);
    cluster.lookups_per_hit =
        std::max(cluster.lookups_per_hit, server->lookups_per_hit);
    cluster.hot_missed += server->hot_missed;
    for (const RowHeat& row : server->hot) hot[row.key] += row.lookups;
  }
  Counts sample;
  for (const ServerHeat* server : counted) {
    for (const RowHeat& row : server->sample) {
      if (HeatHash(row.key) > cluster.last_hash) continue;
      sample[row.key] += row.lookups;
    }
  }
  cluster.hot = MostFirst(hot);
  cluster.sample = MostFirst(sample);
  return cluster;
}

}  // namespace engram::ctl
