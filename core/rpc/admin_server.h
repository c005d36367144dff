#ifndef ENGRAM_CORE_RPC_ADMIN_SERVER_H_
#define ENGRAM_CORE_RPC_ADMIN_SERVER_H_

#include <prometheus/registry.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace engram {

// HTTP beside the data port: /metrics (Prometheus text), /healthz (the process
// lives), /readyz (200 or 503 with the reason).
class AdminServer {
 public:
  struct Options {
    std::string listen;  // host:port, port 0 takes a free one
    std::shared_ptr<prometheus::Registry> registry;
    // Called before each scrape, to set gauges; may be null. On a thread of
    // this server, as the next.
    std::function<void()> before_scrape;
    // Empty when ready, else why not. Called on a thread of this server.
    std::function<std::string()> not_ready_reason;
  };

  // Serving when it returns. UNAVAILABLE: the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<AdminServer>> Start(Options options);
  virtual ~AdminServer() = default;  // stops and joins

  virtual const std::string& address() const = 0;
};

// Registers engram_build_info{version,commit,component} = 1.
void AddBuildInfo(prometheus::Registry& registry, const std::string& component);

}  // namespace engram

#endif  // ENGRAM_CORE_RPC_ADMIN_SERVER_H_
