#include "engram_client/rpc/server_set.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "core/base/check.h"

namespace engram {

ServerSet::ServerSet(size_t max_servers, Environment environment)
    : max_servers_(max_servers),
      environment_(std::move(environment)),
      servers_(max_servers) {
  environment_.monitor->metrics().servers_limit.Set(
      static_cast<double>(max_servers));
}

ServerSet::~ServerSet() {
  Stop();
  for (const auto& server : servers_) {
    if (server == nullptr) continue;
    environment_.transports->Close(server->slot);
    server->transport.reset();
  }
}

void ServerSet::Stop() {
  for (const auto& server : servers_) {
    if (server != nullptr) server->connection->Stop();
  }
}

void ServerSet::Update(absl::Span<const std::string> addresses) {
  const std::vector<std::string> added = Mark(addresses);
  RemoveGone();
  Start(added);
}

std::vector<std::string> ServerSet::Mark(absl::Span<const std::string> named) {
  absl::flat_hash_set<std::string> added(named.begin(), named.end());
  ENGRAM_CHECK(added.size() == named.size());
  for (const auto& server : servers_) {
    if (server == nullptr) continue;
    const bool is_named = added.erase(server->address) > 0;
    if (is_named == server->named) continue;
    server->named = is_named;
    environment_.identity->SetLeaving(server->slot, !is_named);
  }
  std::vector<std::string> in_order;
  for (const std::string& address : named) {
    if (added.contains(address)) in_order.push_back(address);
  }
  return in_order;
}

void ServerSet::RemoveGone() {
  for (const auto& server : servers_) {
    if (server != nullptr && IsGone(*server)) Remove(*server);
  }
}

bool ServerSet::IsGone(const Server& server) const {
  if (server.named) return false;
  const TableClient::ServerState state = server.connection->state();
  if (!state.connected) return true;
  if (environment_.identity->HasSuccessor(server.slot)) return true;
  if (state.partitions_held > 0) return false;
  // It may just be answering what was asked when it had some.
  const auto snapshot = environment_.routing->snapshot();
  return server.slot >= snapshot->servers().size() ||
         snapshot->load(server.slot)->rows_in_flight.load() == 0;
}

void ServerSet::Remove(Server& server) {
  const ServerIndex slot = server.slot;
  spdlog::info("table server {} at {}: gone", server.connection->state().name,
               server.address);
  server.connection->Stop();
  environment_.routing->Withdraw(slot);  // gathers turn to others first
  environment_.transports->Close(slot);
  server.transport.reset();  // the last that was told of it has been
  environment_.routing->Remove(slot);
  environment_.identity->Remove(slot);
  environment_.monitor->RemoveServer(slot);
  {
    MutexLock lock(&mutex_);
    connections_[slot].reset();
  }
  servers_[slot].reset();
}

void ServerSet::Start(absl::Span<const std::string> addresses) {
  std::vector<ConnectionPtr> started;
  for (const std::string& address : addresses) {
    const ServerIndex slot = FreeSlot();
    if (slot == kNoServer) break;
    servers_[slot] = MakeServer(slot, address);
    started.push_back(servers_[slot]->connection);
  }
  {
    MutexLock lock(&mutex_);
    connections_.clear();
    for (const auto& server : servers_) {
      connections_.push_back(server == nullptr ? nullptr : server->connection);
    }
  }
  // Once all are there: the first answer does not stand for all of them.
  for (const ConnectionPtr& connection : started) connection->Start();

  const size_t refused = addresses.size() - started.size();
  if (refused > 0 && refused != refused_) {
    spdlog::warn(
        "{} table servers are not used: the limit is {}, the first is "
        "at {}",
        refused, max_servers_, addresses[started.size()]);
  }
  refused_ = refused;
}

ServerIndex ServerSet::FreeSlot() const {
  for (ServerIndex slot = 0; slot < servers_.size(); ++slot) {
    if (servers_[slot] == nullptr) return slot;
  }
  return kNoServer;
}

std::unique_ptr<ServerSet::Server> ServerSet::MakeServer(
    ServerIndex slot, const std::string& address) {
  const uint64_t generation = ++last_generation_;
  auto server = std::make_unique<Server>();
  server->slot = slot;
  server->address = address;
  server->transport = environment_.make_transport(address);
  server->connection = std::make_shared<ServerConnection>(
      slot, generation, address,
      ServerConnection::Environment{.transports = environment_.transports,
                                    .routing = environment_.routing,
                                    .identity = environment_.identity,
                                    .timers = environment_.timers,
                                    .on_answer = environment_.on_answer});
  environment_.identity->Add(slot, address);
  environment_.routing->Add(slot);
  environment_.monitor->AddServer(slot, generation, address);
  environment_.transports->Open(slot, generation, server->transport.get());
  return server;
}

std::vector<ServerSet::ConnectionPtr> ServerSet::Connections() const {
  std::vector<ConnectionPtr> connections;
  MutexLock lock(&mutex_);
  for (const ConnectionPtr& connection : connections_) {
    if (connection != nullptr) connections.push_back(connection);
  }
  return connections;
}

std::vector<TableClient::ServerState> ServerSet::servers() const {
  std::vector<TableClient::ServerState> states;
  for (const ConnectionPtr& connection : Connections()) {
    states.push_back(connection->state());
  }
  return states;
}

bool ServerSet::all_answered() const {
  const std::vector<ConnectionPtr> connections = Connections();
  for (const ConnectionPtr& connection : connections) {
    if (!connection->answered()) return false;
  }
  return !connections.empty();
}

}  // namespace engram
