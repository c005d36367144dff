#include "engram_client/ctl/probes.h"

#include <algorithm>

namespace engram::ctl {

uint64_t ServerProbe::partitions_held() const {
  uint64_t held = 0;
  for (const Layer& layer : layers) {
    held += std::count(layer.held.begin(), layer.held.end(), true);
  }
  return held;
}

bool ServerProbe::moving() const {
  if (!exchange.has_value()) return false;
  const v1::ExchangeResponse::Moves& moves = exchange->moves();
  return moves.to_load() > 0 || moves.to_free() > 0 || moves.lingering() > 0;
}

std::string StateOf(const ServerProbe& server) {
  if (!server.error.empty()) return "unreachable";
  if (server.draining) return "draining";
  if (server.exchange.has_value() && server.exchange->leaving()) {
    return server.partitions_held() > 0 || server.moving() ? "leaving" : "left";
  }
  return server.ready ? "ready" : "loading";
}

std::string StateOf(const WorkerProbe& worker) {
  if (!worker.error.empty()) return "unreachable";
  return worker.ready ? "ready" : "loading";
}

}  // namespace engram::ctl
