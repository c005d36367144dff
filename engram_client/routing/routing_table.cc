#include "engram_client/routing/routing_table.h"

#include <utility>

namespace engram {
namespace {

std::vector<std::shared_ptr<ServerLoad>> MakeLoads(size_t count) {
  std::vector<std::shared_ptr<ServerLoad>> loads;
  for (size_t i = 0; i < count; ++i) {
    loads.push_back(std::make_shared<ServerLoad>());
  }
  return loads;
}

}  // namespace

RoutingTable::RoutingTable(size_t server_count, std::function<void()> on_change)
    : on_change_(std::move(on_change)), loads_(MakeLoads(server_count)) {
  MutexLock lock(&update_mutex_);
  servers_.resize(server_count);
  Publish();
}

void RoutingTable::Announce(ServerIndex server, ServerRoute route) {
  {
    MutexLock lock(&update_mutex_);
    servers_[server] = std::move(route);
    servers_[server].announced = true;
    Publish();
  }
  on_change_();
}

void RoutingTable::Withdraw(ServerIndex server) {
  {
    MutexLock lock(&update_mutex_);
    if (!servers_[server].announced) return;
    servers_[server].announced = false;
    servers_[server].held.clear();
    Publish();
  }
  on_change_();
}

std::shared_ptr<const RoutingSnapshot> RoutingTable::snapshot() const {
  MutexLock lock(&snapshot_mutex_);
  return snapshot_;
}

bool RoutingTable::WaitUntilComplete(absl::Time deadline) const {
  MutexLock lock(&snapshot_mutex_);
  while (!snapshot_->complete() && !stopped_) {
    if (!published_.WaitUntil(&snapshot_mutex_, deadline)) break;
  }
  return snapshot_->complete() && !stopped_;
}

void RoutingTable::Stop() {
  MutexLock lock(&snapshot_mutex_);
  stopped_ = true;
  published_.NotifyAll();
}

void RoutingTable::Publish() {
  auto next = std::make_shared<const RoutingSnapshot>(servers_, loads_);
  MutexLock lock(&snapshot_mutex_);
  snapshot_.swap(next);
  published_.NotifyAll();
}

}  // namespace engram
