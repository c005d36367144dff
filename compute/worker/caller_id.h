#ifndef ENGRAM_COMPUTE_WORKER_CALLER_ID_H_
#define ENGRAM_COMPUTE_WORKER_CALLER_ID_H_

#include <cstddef>
#include <functional>
#include <string>

namespace engram {

// Between whom a worker divides what it has: the connections to it, as gRPC
// names their other end ("ipv4:10.0.0.7:43210"). A ComputeClient has one to
// each worker, so that this is one client, and nothing that a caller says of
// itself is believed.
//
// What it cannot see: a process with several connections gets the share of as
// many callers; all that come through one proxy, or over a unix: socket (whose
// ends have no names), are one.
struct CallerId {
  std::string name;

  friend bool operator==(const CallerId& a, const CallerId& b) {
    return a.name == b.name;
  }
  struct Hash {
    size_t operator()(const CallerId& id) const {
      return std::hash<std::string>()(id.name);
    }
  };
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_CALLER_ID_H_
