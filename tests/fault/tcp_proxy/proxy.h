#ifndef ENGRAM_TESTS_FAULT_TCP_PROXY_PROXY_H_
#define ENGRAM_TESTS_FAULT_TCP_PROXY_PROXY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/fault/tcp_proxy/endpoint.h"
#include "tests/fault/tcp_proxy/faults.h"
#include "tests/fault/tcp_proxy/link.h"

namespace engram::fault {

// Forwards connections of a port of 127.0.0.1, and does them harm on demand.
// One thread, one epoll.
//
// Commands come as lines of stdin, and each is answered with a line of stdout:
// those of faults.h, and
//   reset       RST for all connections that there are
//   close       their orderly end
//   half_open   they stay open for ever, and nothing passes any more
//   stats       what was counted, as JSON
class Proxy {
 public:
  struct Options {
    std::string to;  // Endpoint
    uint64_t seed = 1;
    size_t max_connections = 1024;  // more are reset
  };

  static absl::StatusOr<std::unique_ptr<Proxy>> Create(Options options);

  const std::string& address() const { return listener_.address; }

  // Serves until stdin ends.
  absl::Status Run();

 private:
  struct Watched {
    Link link;
    uint32_t events[2] = {0, 0};  // that epoll watches, by Link::Side
  };
  using Links = std::map<uint64_t, Watched>;

  Proxy(Options options, Endpoint to, Listener listener, Fd epoll);

  absl::Status Watch(int fd, uint64_t tag);
  void Accept();
  // False: stdin has ended.
  bool ReadCommands();
  absl::StatusOr<std::string> Obey(const std::string& line);
  void PumpAll();
  void PumpDue(Steady::time_point now);
  Links::iterator Pump(Links::iterator link, Steady::time_point now);
  void UpdateWatch(uint64_t id, Watched& watched);
  void ResetSome(Steady::time_point now);
  void EndAll(bool with_reset);
  void FreezeAll();
  std::string Stats() const;
  int WaitMs(Steady::time_point now) const;

  const Options options_;
  const Endpoint to_;
  const Listener listener_;
  const Fd epoll_;
  Faults faults_;
  std::mt19937_64 random_;
  ProxyCounts counts_;
  std::optional<Steady::time_point> next_reset_;  // where a share is reset
  std::string command_bytes_;                     // a line in parts
  uint64_t next_link_id_ = 1;
  Links links_;
};

}  // namespace engram::fault

#endif  // ENGRAM_TESTS_FAULT_TCP_PROXY_PROXY_H_
