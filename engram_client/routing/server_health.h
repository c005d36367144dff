#ifndef ENGRAM_ENGRAM_CLIENT_ROUTING_SERVER_HEALTH_H_
#define ENGRAM_ENGRAM_CLIENT_ROUTING_SERVER_HEALTH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "engram_client/routing/routing_snapshot.h"

namespace engram {

// How a call ended, as far as it says something about its server.
enum class CallOutcome {
  kAnswered,
  kRefused,    // overloaded, draining, does not hold it: the server is well
  kFailed,     // an error that is the server's or the network's fault
  kCorrupt,    // rows that are not what the server meant to send
  kBeaten,     // its hedges answered first
  kTimedOut,   // the gather's deadline came first, and the call was slow
  kCancelled,  // given up for no fault of the server's
  kOverdue,    // no end: it takes longer than nearly all others already
};
inline constexpr size_t kCallEndCount = 7;  // those before kOverdue

// Which servers are fit to be asked.
//
//            too many errors,            after 1 s .. 30 s
//   well ------ or too slow ------> out ------------------> back
//    ^                               ^                       | |
//    |                               +---- bad again (2x) ---+ |
//    +------- all shares of the traffic went well -------------+
//
// A server that is out is asked only for what nobody else has. One that comes
// back gets single probes, then a share of the gathers that doubles as long as
// calls go well. Never more than a share of the servers that are there is out
// or coming back: when all are bad, they are used as they are.
//
// Both are moving averages over calls: of those that went wrong, and of how
// long they took in log2, by what calls of their size usually take, so that a
// single call moves neither much. Both are compared with the other servers':
// what all suffer from (too much load, a client that gets no time to run) is
// the fault of none, and leaving one out would only put its load on the others.
//
// Times are of one clock, given with each call. Thread safety: all methods may
// be called concurrently; locks only the server that a call is about.
class ServerHealth {
 public:
  struct Options {
    uint32_t min_calls = 20;       // fewer say nothing
    double max_bad_share = 0.3;    // above the median of the others
    double suspect_share = 0.1;    // of bad calls; see DoubtOf
    uint32_t corrupt_weight = 10;  // a corrupt reply counts as so many errors
    double max_slowness = 5;       // against the median of the others
    absl::Duration first_ejection = absl::Seconds(1);
    absl::Duration longest_ejection = absl::Seconds(30);
    double max_ejected_share = 0.5;
    uint32_t good_probes = 3;      // before a server gets a share again
    uint32_t good_calls = 8;       // before its share doubles
    uint32_t first_share_of = 16;  // 1/16
    absl::Duration longest_push_back = absl::Seconds(1);
    size_t max_servers = 0;  // with those that come later
  };
  enum class Reason { kErrors, kLatency };
  // For a call that takes long.
  enum class Doubt {
    kNone,     // chance, or so it seems
    kSuspect,  // so did others there
    kOut,
  };
  // For one gather.
  enum class Standing {
    kUsable,
    kProbe,  // usable while it has nothing in flight
    kShunned,
  };

  // The first `server_count` slots have servers, of generation 0.
  ServerHealth(size_t server_count, const Options& options);

  // The slot has a server from now on, of which nothing is known. What is told
  // of servers of other generations is ignored. REQUIRES: server < max_servers.
  void Add(ServerIndex server, uint64_t generation);
  void Remove(ServerIndex server);

  // Whether the server is one to choose from; new ones are.
  void SetAnnounced(ServerIndex server, bool announced) {
    servers_[server]->announced.store(announced, std::memory_order_relaxed);
  }

  // `slowness` of 0: not known. Returns why the server is out now, if it was
  // not before.
  std::optional<Reason> CallEnded(ServerIndex server, CallOutcome outcome,
                                  double slowness, absl::Time now,
                                  uint64_t generation = 0);

  // The server is overloaded and asks not to be asked for so long, by anyone:
  // it is shunned then, but is not unwell. A time that is too long is cut.
  void PushedBack(ServerIndex server, absl::Duration time, absl::Time now,
                  uint64_t generation = 0);
  bool HasPushedBack(ServerIndex server, absl::Time now) const {
    return now < TimeOf(servers_[server]->pushed_back_until_us);
  }

  // The usual case, in which nothing else need be asked.
  bool all_usable(absl::Time now) const {
    return all_well() && now >= TimeOf(some_pushed_back_until_us_);
  }
  bool all_well() const { return unwell_.load(std::memory_order_relaxed) == 0; }
  // Servers that are out or coming back.
  size_t unwell() const { return unwell_.load(std::memory_order_relaxed); }
  bool IsWell(ServerIndex server) const {
    return servers_[server]->well.load(std::memory_order_relaxed);
  }
  bool IsOut(ServerIndex server, absl::Time now) const;
  Doubt DoubtOf(ServerIndex server, absl::Time now) const;
  // `turn`: one number after the other, over gathers.
  Standing StandingOf(ServerIndex server, uint32_t turn, absl::Time now) const;

 private:
  enum class State { kWell, kOut, kBack };

  struct Server {
    mutable Mutex mutex;
    uint64_t generation ABSL_GUARDED_BY(mutex) = 0;
    State state ABSL_GUARDED_BY(mutex) = State::kWell;
    absl::Time since ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
    absl::Time out_until ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
    absl::Duration next_ejection ABSL_GUARDED_BY(mutex);
    // Coming back: 1/share_of of the gathers; 0: probes.
    uint32_t share_of ABSL_GUARDED_BY(mutex) = 0;
    uint32_t good ABSL_GUARDED_BY(mutex) = 0;  // calls with this share
    // In the averages.
    uint32_t calls ABSL_GUARDED_BY(mutex) = 0;
    uint32_t timed ABSL_GUARDED_BY(mutex) = 0;
    // What is compared with other servers'; NaN: nothing is known.
    std::atomic<double> bad_share;
    std::atomic<double> slowness;  // log2
    std::atomic<int64_t> pushed_back_until_us{0};
    std::atomic<bool> well{true};
    std::atomic<bool> announced{true};
    std::atomic<bool> used{false};
  };
  static constexpr uint64_t kNobody = ~uint64_t{0};

  // Servers up to the last slot that is used.
  absl::Span<const std::unique_ptr<Server>> InUse() const {
    return absl::MakeSpan(servers_).first(
        length_.load(std::memory_order_relaxed));
  }
  void Replace(ServerIndex index, uint64_t generation);

  static absl::Time TimeOf(const std::atomic<int64_t>& us) {
    return absl::FromUnixMicros(us.load(std::memory_order_relaxed));
  }
  void Count(Server& server, CallOutcome outcome, double slowness) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(server.mutex);
  static void Forget(Server& server, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(server.mutex);
  std::optional<Reason> Fault(const Server& server) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(server.mutex);
  bool IsTooBad(const Server& server) const;
  bool IsTooSlow(const Server& server) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(server.mutex);
  // Of those of which it is known; NaN without any.
  double MedianOfOthers(const Server& server,
                        std::atomic<double> Server::*value) const;
  // False: too many are not.
  bool MarkUnwell(Server& server);
  void Eject(Server& server, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(server.mutex);
  void Promote(Server& server, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(server.mutex);

  const Options options_;
  std::vector<std::unique_ptr<Server>> servers_;  // there from the start
  std::atomic<size_t> length_{0};
  Mutex marking_;  // one at a time, so that they are no more than they may be
  std::atomic<size_t> unwell_{0};
  std::atomic<int64_t> some_pushed_back_until_us_{0};  // the last of them
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_ROUTING_SERVER_HEALTH_H_
