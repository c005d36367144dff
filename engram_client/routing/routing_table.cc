#include "engram_client/routing/routing_table.h"

#include <utility>

#include "core/base/check.h"

namespace engram {

RoutingTable::RoutingTable(size_t server_count, std::function<void()> on_change)
    : on_change_(std::move(on_change)) {
  MutexLock lock(&update_mutex_);
  SetLength(server_count);
  used_.assign(server_count, true);
  Publish();
}

void RoutingTable::SetLength(size_t length) {
  servers_.resize(length);
  used_.resize(length);
  loads_.resize(length);
  for (auto& load : loads_) {
    if (load == nullptr) load = std::make_shared<ServerLoad>();
  }
}

void RoutingTable::Add(ServerIndex server) {
  MutexLock lock(&update_mutex_);
  if (server >= used_.size()) SetLength(server + 1);
  ENGRAM_CHECK(!used_[server]);
  used_[server] = true;
}

void RoutingTable::Remove(ServerIndex server) {
  {
    MutexLock lock(&update_mutex_);
    const bool was_announced = servers_[server].announced;
    const size_t length_before = servers_.size();
    servers_[server] = {};
    // What is still in flight counts at the old one.
    loads_[server] = std::make_shared<ServerLoad>();
    used_[server] = false;
    while (!used_.empty() && !used_.back()) SetLength(used_.size() - 1);
    if (!was_announced && servers_.size() == length_before) return;
    Publish();
  }
  on_change_();
}

void RoutingTable::Announce(ServerIndex server, ServerRoute route) {
  {
    MutexLock lock(&update_mutex_);
    ENGRAM_CHECK(used_[server]);
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
