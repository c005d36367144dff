#include <map>
#include <memory>
#include <utility>

#include "tests/unit/table_server/rebalance/simulated_cluster.h"
#include "tests/unit/table_server/rebalance/simulated_server.h"

namespace engram::test {

void SimulatedCluster::ExchangeWithAll(Server& server) {
  const auto view = server.hand_over.view();
  std::map<std::string, HandOver::Ask> asks;
  if (server.tracker.has_value()) {
    for (const Member& peer : server.tracker->Peers()) asks[peer.name] = {};
  } else {
    for (const auto& [name, peer] : servers_) asks[name] = {};
    asks.erase(server.name);
  }
  for (HandOver::Ask& ask : server.hand_over.Asks()) {
    if (asks.contains(ask.peer)) asks[ask.peer] = std::move(ask);
  }
  for (auto& [peer, ask] : asks) {
    if (!server.tracker.has_value() && ask.partitions.empty()) continue;
    if (random_.Chance(settings_.lost_messages)) continue;
    ask.peer = peer;
    if (view != nullptr) ask.digest = view->digest();
    Request request{.from = server.weak_from_this(), .ask = std::move(ask)};
    if (server.tracker.has_value()) {
      request.departures = server.tracker->departures();
    }
    time_.After(random_.UpTo(settings_.delay),
                [this, request = std::move(request)] { Answer(request); });
  }
}

void SimulatedCluster::Answer(const Request& request) {
  const auto found = servers_.find(request.ask.peer);
  if (found == servers_.end()) return;
  Server& server = *found->second;
  const auto view = server.hand_over.view();
  Response response{
      .to = request.from,
      .from = server.name,
      .instance_id = server.instance_id,
      .view_digest = view == nullptr ? "" : view->digest(),
      .ready = view != nullptr && server.hand_over.counts().to_load == 0,
      .draining = server.stopped.has_value(),
      .held = server.hand_over.HeldPartitions(),
      .epoch = request.ask.epoch};
  if (server.tracker.has_value()) {
    server.tracker->MergeDepartures(request.departures);
    response.departures = server.tracker->departures();
  }
  if (!server.stopped.has_value()) {
    response.acknowledged = server.hand_over.Acknowledge(
        request.ask.digest, request.ask.partitions);
  }
  if (!response.acknowledged.empty() && view->digest() != request.ask.digest) {
    checks_.Break(time_.now(),
                  server.name + " acknowledged under another digest");
  }
  if (random_.Chance(settings_.lost_messages)) return;
  time_.After(random_.UpTo(settings_.delay),
              [this, response = std::move(response)] { TakeAnswer(response); });
}

void SimulatedCluster::TakeAnswer(const Response& response) {
  const auto server = response.to.lock();
  if (server == nullptr) return;
  if (server->tracker.has_value()) {
    server->tracker->HeardFrom(response.from, response.instance_id,
                               !response.view_digest.empty(), time_.now());
    server->tracker->MergeDepartures(response.departures);
  }
  server->holdings.Set(response.from, {.ready = response.ready,
                                       .draining = response.draining,
                                       .view_digest = response.view_digest,
                                       .heard = time_.now(),
                                       .held = response.held});
  const auto [known, first] =
      server->instances.emplace(response.from, response.instance_id);
  if (response.instance_id > known->second) {
    known->second = response.instance_id;
    server->hand_over.PeerRestarted(response.from);
  }
  server->hand_over.Acknowledged(response.from, response.epoch,
                                 response.acknowledged, time_.now());
}

}  // namespace engram::test
