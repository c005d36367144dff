#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_REBALANCE_NODE_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_REBALANCE_NODE_H_

#include <prometheus/registry.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/wire/layer_partitions.h"
#include "engram/v1/table.pb.h"
#include "table_server/partitions/partition_set.h"
#include "table_server/peers/fake_peer_calls.h"
#include "table_server/rebalance/rebalance_metrics.h"
#include "table_server/rebalance/rebalancer.h"
#include "tests/unit/table_server/rebalance/rebalance_fakes.h"
#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram::test {

// Lingers and intervals of tests that let real time pass.
inline Rebalancer::Options QuickOptions(const std::string& self) {
  static std::atomic<uint64_t> next_instance_id{1};
  return {.membership = {.self = self,
                         .self_instance_id = next_instance_id.fetch_add(1),
                         .stability_window = absl::ZeroDuration()},
          .hand_over = {.announce_linger = absl::Milliseconds(50),
                        .answer_linger = absl::Milliseconds(50),
                        .retry_load = absl::Milliseconds(10)},
          .loading = {.thread_count = 2, .paced_thread_count = 2},
          .exchange_interval = absl::Milliseconds(500),
          .watching = {.interval = absl::Milliseconds(2)}};
}

// A server without gRPC and rows: a rebalancer over fakes, and what answers the
// others.
class Node {
 public:
  Node(Rebalancer::Options options, const std::vector<std::string>& members)
      : name_(options.membership.self),
        instance_id_(options.membership.self_instance_id),
        source_(std::make_shared<FakeSource>(Members(members))),
        rebalancer_({.manifest = &SmallManifest(),
                     .partitions = &partitions_,
                     .metrics = &metrics_,
                     .members = source_},
                    std::move(options)) {}
  ~Node() { rebalancer_.Stop(); }

  void Start(PeerCalls& peers) {
    rebalancer_.Start(store_, peers,
                      {.progress = [this](uint64_t, uint64_t) { ++looks_; },
                       .ready = [this](absl::Duration) { OnReady(); }});
  }

  // As the service answers Exchange.
  absl::StatusOr<v1::ExchangeResponse> Answer(
      const v1::ExchangeRequest& request) {
    v1::ExchangeResponse response;
    response.set_version(SmallManifest().version());
    response.set_server_name(name_);
    response.set_instance_id(instance_id_);
    response.set_ready(ready_.load());
    *response.mutable_held() = ToLayerPartitions(
        partitions_.ChangesSince(0).added, LayersOf(SmallManifest()));
    const auto to_free =
        FromLayerPartitions(request.to_free(), LayersOf(SmallManifest()));
    EXPECT_TRUE(to_free.ok());
    const absl::Status status =
        rebalancer_.calls().Exchange(request, *to_free, response);
    if (!status.ok()) return status;
    return response;
  }
  // What a tool sees.
  v1::ExchangeResponse State() { return Answer({}).value(); }

  void SetMembers(const std::vector<std::string>& members) {
    source_->Set(Members(members));
  }
  // What is owned by its view; empty: it has none.
  std::set<PartitionRef> Owned() const {
    const auto view = rebalancer_.view();
    return view == nullptr ? std::set<PartitionRef>{} : ToSet(view->owned());
  }
  // Whether it follows these members, and has and announces just what it owns.
  bool IsSettled(const std::vector<std::string>& members) const {
    const auto view = rebalancer_.view();
    if (view == nullptr || view->members() != Members(members)) return false;
    const std::set<PartitionRef> owned = ToSet(view->owned());
    return AnnouncedIn(partitions_) == owned && store_.loaded() == owned;
  }

  const std::string& name() const { return name_; }
  std::string address() const { return name_ + ":1"; }
  FakeSource& source() { return *source_; }
  PartitionSet& partitions() { return partitions_; }
  FakeStore& store() { return store_; }
  Rebalancer& rebalancer() { return rebalancer_; }
  const prometheus::Registry& registry() const { return *registry_; }
  bool ready() const { return ready_.load(); }
  // Of the rebalancer at what there is to do, until it was ready.
  size_t looks() const { return looks_.load(); }
  // What was announced when it said that it was ready.
  std::set<PartitionRef> announced_when_ready() const {
    EXPECT_TRUE(ready());
    return announced_when_ready_;
  }

 private:
  void OnReady() {
    EXPECT_FALSE(ready()) << "told twice";
    announced_when_ready_ = AnnouncedIn(partitions_);
    ready_.store(true);
  }

  const std::string name_;
  const uint64_t instance_id_;
  PartitionSet partitions_{SmallManifest()};
  const std::shared_ptr<prometheus::Registry> registry_ =
      std::make_shared<prometheus::Registry>();
  RebalanceMetrics metrics_{registry_};
  const std::shared_ptr<FakeSource> source_;
  FakeStore store_{SmallManifest(), &partitions_};
  std::atomic<size_t> looks_{0};
  std::set<PartitionRef> announced_when_ready_;  // before ready_
  std::atomic<bool> ready_{false};
  Rebalancer rebalancer_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_REBALANCE_NODE_H_
