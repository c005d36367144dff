#ifndef ENGRAM_ENGRAM_CLIENT_CTL_PROBES_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_PROBES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engram/v1/table.pb.h"

namespace engram::ctl {

// What one table server said of itself.
struct ServerProbe {
  struct Layer {
    uint32_t layer_id = 0;
    std::vector<bool> held;  // one a partition
  };
  std::string address;
  // Not among the addresses that were given: others name it as a member.
  bool found = false;
  std::string error;  // why it said nothing; empty: the rest is known
  std::string name;   // where it said nothing, what others call it
  std::string version;
  uint64_t instance_id = 0;
  bool ready = false;
  bool draining = false;
  std::vector<Layer> layers;
  // Its view of the cluster and its moves. None of older releases.
  std::optional<v1::ExchangeResponse> exchange;

  uint64_t partitions_held() const;
  // Whether it holds, owns or answers for something that it is not to have, or
  // lacks something that it is.
  bool moving() const;
};

// What one compute worker said of itself.
struct WorkerProbe {
  std::string address;
  std::string error;
  std::string name;
  std::string version;
  bool ready = false;
  std::vector<uint32_t> layer_ids;
};

// "ready"; "loading": something it owns is not there yet; "draining": its
// process is about to end; "leaving": for good, others take over what it
// holds; "left": they have, it may be stopped; "unreachable".
std::string StateOf(const ServerProbe& server);
std::string StateOf(const WorkerProbe& worker);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_PROBES_H_
