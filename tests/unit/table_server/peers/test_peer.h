#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_PEERS_TEST_PEER_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_PEERS_TEST_PEER_H_

#include <memory>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/rpc/rpc_server.h"
#include "table_server/service/table_metrics.h"
#include "table_server/service/table_service.h"
#include "table_server/tier/synthetic_tier.h"
#include "tests/unit/table_server/test_table.h"

namespace engram::test {

// A table server that holds all of a synthetic table, on a unix socket.
class TestPeer {
 public:
  TestPeer(const Manifest& manifest, const std::string& name,
           const std::string& socket, const ServiceLimits& limits = {},
           int free_copies = 0)
      : partitions(manifest),
        tier_(manifest, kTestSeed),
        gated_tier(tier_, free_copies),
        metrics(std::make_shared<prometheus::Registry>(),
                {manifest.layers()[0].layer_id, manifest.layers()[1].layer_id}),
        service(manifest, partitions, gated_tier, metrics,
                {.server_name = name, .limits = limits, .worker_threads = 1}) {
    AddAll(manifest, partitions);
    auto started = RpcServer::Start({.listen = "unix:" + socket,
                                     .services = {&service},
                                     .queue_service = &service});
    ENGRAM_CHECK(started.ok());
    server = *std::move(started);
  }
  ~TestPeer() {
    gated_tier.Open();
    server.reset();
  }

  std::string address() const { return server->address(); }
  double fetches() {
    service.UpdateGauges();
    return metrics.gauges().fetches->Value();
  }

  PartitionSet partitions;

 private:
  const SyntheticTier tier_;

 public:
  GatedTier gated_tier;
  TableMetrics metrics;
  TableService service;
  std::unique_ptr<RpcServer> server;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_PEERS_TEST_PEER_H_
