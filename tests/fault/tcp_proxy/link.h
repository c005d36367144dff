#ifndef ENGRAM_TESTS_FAULT_TCP_PROXY_LINK_H_
#define ENGRAM_TESTS_FAULT_TCP_PROXY_LINK_H_

#include <array>
#include <cstdint>
#include <optional>
#include <random>

#include "tests/fault/tcp_proxy/endpoint.h"
#include "tests/fault/tcp_proxy/faults.h"
#include "tests/fault/tcp_proxy/frame_flipper.h"
#include "tests/fault/tcp_proxy/pipe.h"

namespace engram::fault {

// What a proxy counts.
struct ProxyCounts {
  uint64_t accepted = 0;
  uint64_t refused = 0;  // over the limit of connections, or no server there
  uint64_t resets = 0;
  uint64_t flips = 0;
  uint64_t up_bytes = 0;
  uint64_t down_bytes = 0;
};

// One client's connection and its continuation to the server.
//
// Thread safety: none.
class Link {
 public:
  enum class Side { kClient = 0, kServer = 1 };

  Link(Fd client, Fd server);

  // Reads and sends what may be read and sent now. False: the link has ended.
  bool Pump(const Faults& faults, Steady::time_point now,
            std::mt19937_64& random, ProxyCounts& counts);

  // epoll events that Pump waits for on a side; 0: the side must not be
  // watched, as its state would be told again and again.
  uint32_t Interest(Side side, const Faults& faults) const;
  // When Pump has something to do though no event comes.
  std::optional<Steady::time_point> NextPump(const Faults& faults) const;

  // From now on nothing is read, sent or closed, whatever the ends do.
  void Freeze() { frozen_ = true; }
  bool frozen() const { return frozen_; }
  // Both ends get RST.
  void Reset();

  int fd(Side side) const { return fds_[static_cast<size_t>(side)].get(); }
  size_t buffered_bytes() const {
    return flows_[0].pipe.size_bytes() + flows_[1].pipe.size_bytes();
  }

 private:
  // Bytes of one direction: from fds_[i] to fds_[1 - i].
  struct Flow {
    Pipe pipe;
    bool no_more = false;  // the source has ended
    bool ended = false;    // and the destination was told
  };

  bool Read(size_t from, const Faults& faults, Steady::time_point now,
            std::mt19937_64& random, ProxyCounts& counts);
  bool Send(size_t from, const Faults& faults, Steady::time_point now,
            ProxyCounts& counts);

  std::array<Fd, 2> fds_;               // by Side
  std::array<Flow, 2> flows_;           // by the Side that they come from
  std::array<bool, 2> send_blocked_{};  // by the Side that they come from
  FrameFlipper flipper_;
  bool frozen_ = false;
};

}  // namespace engram::fault

#endif  // ENGRAM_TESTS_FAULT_TCP_PROXY_LINK_H_
