#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_SCRIPTED_PEER_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_SCRIPTED_PEER_H_

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/wire/layer_partitions.h"
#include "engram/v1/table.pb.h"
#include "table_server/peers/fake_peer_calls.h"
#include "table_server/rebalance/departure_list.h"
#include "tests/unit/table_server/rebalance/rebalance_fakes.h"
#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram::test {

// A peer that says what the test wants. By itself it is ready, sees what the
// caller sees and holds nothing.
class ScriptedPeer {
 public:
  struct Script {
    bool ready = true;
    bool draining = false;
    bool leaving = false;
    std::optional<std::string> view_digest;  // none: the caller's
    std::vector<PartitionRef> held;
    std::vector<MemberDeparture> departures;
    // Loads and acknowledges whatever it is asked to.
    bool takes_over = false;
  };

  explicit ScriptedPeer(std::string name) : name_(std::move(name)) {}

  // It must stay until nobody makes calls any more.
  void ListenIn(FakePeerCalls& calls) { ListenIn(calls, name_ + ":1"); }
  void ListenIn(FakePeerCalls& calls, const std::string& address) {
    calls.Set(address, {.exchange =
                            [this](const v1::ExchangeRequest& request) {
                              return Answer(request);
                            },
                        .fetch = nullptr});
  }

  void Change(const std::function<void(Script&)>& change) {
    MutexLock lock(&mutex_);
    change(script_);
  }
  size_t calls() const {
    MutexLock lock(&mutex_);
    return calls_;
  }
  // Of the last call that asked for anything.
  std::set<PartitionRef> asked() const {
    MutexLock lock(&mutex_);
    return asked_;
  }
  std::vector<MemberDeparture> told() const {  // of the last call
    MutexLock lock(&mutex_);
    return told_;
  }

 private:
  v1::ExchangeResponse Answer(const v1::ExchangeRequest& request) {
    const std::vector<LayerPartitionCount> layers = LayersOf(SmallManifest());
    const std::vector<PartitionRef> to_free =
        FromLayerPartitions(request.to_free(), layers).value();
    MutexLock lock(&mutex_);
    ++calls_;
    told_ = FromDepartureList(request.departures());
    if (!to_free.empty()) asked_ = ToSet(to_free);
    std::set<PartitionRef> held = ToSet(script_.held);
    if (script_.takes_over) {
      held.insert(to_free.begin(), to_free.end());
      script_.held = {held.begin(), held.end()};
    }
    v1::ExchangeResponse response;
    response.set_version(SmallManifest().version());
    response.set_server_name(name_);
    response.set_instance_id(1);
    response.set_view_digest(
        script_.view_digest.value_or(request.view_digest()));
    response.set_ready(script_.ready);
    response.set_draining(script_.draining);
    response.set_leaving(script_.leaving);
    *response.mutable_held() = ToLayerPartitions(script_.held, layers);
    *response.mutable_departures() = ToDepartureList(script_.departures);
    if (script_.takes_over) {
      *response.mutable_acknowledged() = request.to_free();
    }
    return response;
  }

  const std::string name_;
  mutable Mutex mutex_;
  Script script_ ABSL_GUARDED_BY(mutex_);
  size_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<PartitionRef> asked_ ABSL_GUARDED_BY(mutex_);
  std::vector<MemberDeparture> told_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_SCRIPTED_PEER_H_
