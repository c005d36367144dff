#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_RPC_GATHER_OPERATION_FIXTURE_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_RPC_GATHER_OPERATION_FIXTURE_H_

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/check.h"
#include "engram_client/rpc/gather_operation.h"
#include "tests/unit/engram_client/gather_buffers.h"
#include "tests/unit/engram_client/rpc/scripted_server.h"

namespace engram {

inline absl::Time Later() { return absl::Now() + absl::Seconds(60); }

// Gathers of rows of layer 1, which is all that there is; partitions have 16.
class GatherOperationTest : public ::testing::Test {
 protected:
  static constexpr size_t kServers = 3;

  GatherOperationTest() {
    spdlog::default_logger_raw();  // not made by threads that log
    info_.version = "t";
    info_.partition_rows = 16;
    info_.row_format.width = FakeTable::kWidth;
    info_.row_format.block_size = FakeTable::kWidth;
    info_.layers = {{LayerId{1}, 1000, 63}};
    Watch({.max_hedge_buffer_bytes = 1 << 20,
           .times = {.first_hedge_delay = absl::Milliseconds(2)}});
    environment_.table = &info_;
    environment_.routing = &routing_;
    environment_.policy = &policy_;
    environment_.timers = &timers_;
    environment_.transports = &transports_;
    for (ServerIndex i = 0; i < kServers; ++i) {
      transports_.Open(i, /*generation=*/0, &servers_[i]);
    }
    environment_.max_rows_per_call = 1000;
    environment_.server_problems = [] { return std::string(); };
    environment_.on_ending = [] {};
    environment_.on_finished = [](GatherOperation*) {};
  }
  ~GatherOperationTest() override {
    gather_.reset();
    for (auto& server : servers_) server.CancelRest();
    timers_.Stop();
  }

  void Watch(const CallMonitor::Options& options) {
    environment_.monitor = std::make_shared<CallMonitor>(kServers, options);
  }
  void Announce(ServerIndex server, const std::vector<uint32_t>& partitions) {
    ServerRoute route;
    route.name = std::string(1, static_cast<char>('a' + server));
    route.address = "x:" + std::to_string(server);
    route.held.emplace_back(63);
    for (const uint32_t p : partitions) route.held[0].Set(p);
    routing_.Announce(server, route);
  }
  // Makes the policy take others.
  void LoadServer(ServerIndex server) {
    routing_.snapshot()->load(server)->rows_in_flight += 1000000;
  }
  // Server 0 is asked for partitions 0 and 1; 1 and 2 have one of them each.
  void AnnounceOneWithTwoPartners() {
    Announce(0, {0, 1});
    Announce(1, {0});
    Announce(2, {1});
    LoadServer(1);
    LoadServer(2);
  }

  std::shared_ptr<GatherOperation> Start(GatherBuffers& buffers,
                                         absl::Time deadline = Later()) {
    gather_ = std::make_shared<GatherOperation>(
        environment_,
        std::vector<LayerGather>{
            {LayerId{1}, buffers.ids[0], absl::MakeSpan(buffers.out[0])}},
        deadline, nullptr);
    gather_->Start();
    return gather_;
  }
  TableClient::Stats stats() const { return environment_.monitor->stats(); }
  double Hedges(HedgeEnd end) const {
    return environment_.monitor->metrics().hedges(end).Value();
  }
  double Ended(CallOutcome outcome) const {
    return environment_.monitor->metrics().ended(outcome).Value();
  }
  static void YieldUntil(const std::function<bool()>& holds) {
    const absl::Time give_up = Later();
    while (!holds()) {
      ENGRAM_CHECK(absl::Now() < give_up);
      std::this_thread::yield();
    }
  }
  static void AwaitCancel(const ScriptedServer::CallPtr& call) {
    YieldUntil([&] { return call->cancelled(); });
  }
  void AwaitRefusedHedge() const {
    YieldUntil([&] { return stats().refused_hedges > 0; });
  }

  TableInfo info_;
  TimerQueue timers_;
  RoutingTable routing_{kServers, [] {}};
  FewestRowsPolicy policy_;
  ScriptedServer servers_[kServers];
  TransportSlots transports_{kServers};
  GatherEnvironment environment_;
  std::shared_ptr<GatherOperation> gather_;
};

}  // namespace engram

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_RPC_GATHER_OPERATION_FIXTURE_H_
