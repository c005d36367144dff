#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_SERVICE_SERVICE_FIXTURE_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_SERVICE_SERVICE_FIXTURE_H_

#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "core/rpc/channel.h"
#include "core/rpc/rpc_server.h"
#include "core/wire/error_detail.h"
#include "engram/v1/table.grpc.pb.h"
#include "table_server/service/table_metrics.h"
#include "table_server/service/table_service.h"
#include "table_server/tier/synthetic_tier.h"
#include "tests/testing/eventually.h"
#include "tests/testing/fixed_window.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/table_server/test_table.h"

namespace engram::test {

// A TableService behind a real gRPC server on a unix socket, over the tiny
// synthetic table, of which it holds every partition.
class ServiceFixture : public ::testing::Test {
 protected:
  ServiceFixture() { AddAll(manifest_, partitions_); }

  ~ServiceFixture() override {
    gated_tier_.Open();
    server_.reset();
  }

  // Serves `tier`, or the synthetic one.
  void Start(const ServiceLimits& limits = {}, const RowTier* tier = nullptr,
             size_t worker_threads = 2) {
    service_ = std::make_unique<TableService>(
        manifest_, partitions_, tier != nullptr ? *tier : tier_, metrics_,
        TableService::Options{.server_name = "s1",
                              .instance_id = 99,
                              .limits = limits,
                              .worker_threads = worker_threads,
                              .cluster = cluster_,
                              .clock = &clock_});
    auto server =
        RpcServer::Start({.listen = "unix:" + dir_.File("s"),
                          .services = {service_.get()},
                          .queues = {queue_},
                          .queue_service = service_.get(),
                          .max_receive_bytes = service_->max_request_bytes()});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = v1::TableService::NewStub(MakeChannel(server_->address()));
  }
  // From here on what a caller does not read stops what it is sent.
  void FixWindow() {
    stub_ =
        v1::TableService::NewStub(ChannelWithFixedWindow(server_->address()));
  }

  double Gauge(prometheus::Gauge* gauge) const {
    service_->UpdateGauges();
    return gauge->Value();
  }
  // The server hears of some events a little later than its callers.
  void WaitFor(prometheus::Gauge* gauge, double value) const {
    EXPECT_TRUE(Eventually([&] { return Gauge(gauge) == value; }))
        << Gauge(gauge) << " is not " << value;
  }

  // Bounds every call of a test; none is expected to take that long.
  static void SetDeadline(grpc::ClientContext& context) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
  }

  LayerId layer(size_t index) const {
    return manifest_.layers()[index].layer_id;
  }
  v1::GatherRequest Request(size_t layer_index,
                            const std::vector<RowId>& ids) const {
    v1::GatherRequest request;
    v1::LayerRows* rows = request.add_layers();
    rows->set_layer_id(ToInt(layer(layer_index)));
    rows->mutable_row_ids()->Assign(ids.begin(), ids.end());
    return request;
  }
  std::string Rows(size_t layer_index, const std::vector<RowId>& ids) const {
    return SyntheticRows(manifest_, layer(layer_index), ids);
  }
  absl::Status Gather(const v1::GatherRequest& request,
                      v1::GatherResponse& response) {
    grpc::ClientContext context;
    SetDeadline(context);
    return FromGrpcStatus(stub_->Gather(&context, request, &response));
  }
  absl::Status Gather(const v1::GatherRequest& request) {
    v1::GatherResponse response;
    return Gather(request, response);
  }

  const TempDir dir_;
  // So many threads that a gated tier cannot hold all of them.
  QueueLoop::Options queue_{.thread_count = 4};
  // Of the service. gRPC's deadlines are of the machine's clock.
  FakeClock clock_{absl::Now()};
  const Manifest manifest_ = TinyManifest();
  PartitionSet partitions_{manifest_};
  const SyntheticTier tier_{manifest_, kTestSeed};
  GatedTier gated_tier_{tier_};
  const std::shared_ptr<prometheus::Registry> registry_ =
      std::make_shared<prometheus::Registry>();
  TableMetrics metrics_{
      registry_,
      {manifest_.layers()[0].layer_id, manifest_.layers()[1].layer_id}};
  ClusterCalls* cluster_ = nullptr;  // of the service
  std::unique_ptr<TableService> service_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<v1::TableService::Stub> stub_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_SERVICE_SERVICE_FIXTURE_H_
