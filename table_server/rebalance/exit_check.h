#ifndef ENGRAM_TABLE_SERVER_REBALANCE_EXIT_CHECK_H_
#define ENGRAM_TABLE_SERVER_REBALANCE_EXIT_CHECK_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/manifest.h"
#include "table_server/rebalance/cluster_view.h"
#include "table_server/rebalance/known_peers.h"

namespace engram {

// Whether a server may end without taking the only copy of anything with it.
//
// From `began` on it acknowledges nothing and tells whoever asks that it goes.
// Peers count only by what they answered to calls from then on: so nothing that
// counts rests on this server's acknowledgements, and of two servers that end
// at a time at least one sees that the other goes.
class ExitCheck {
 public:
  struct Options {
    std::string self;
    absl::Time began;
    // A peer that was last heard so long ago holds nothing for sure.
    absl::Duration silent_after;
    // One that has not answered for so long, since `began` at least, will take
    // nothing over: it may only restart, under another address.
    absl::Duration patience;
    // And nobody is left to wait for when none has for so long. Longer: with
    // that something is lost.
    absl::Duration give_up_after;
  };
  enum class Advice {
    kEnd,        // others hold all of it
    kWait,       // others will
    kLeave,      // they will when this server is no member any more
    kNobodyElse  // nobody is there to take it
  };
  struct Finding {
    Advice advice = Advice::kEnd;
    size_t only_here = 0;        // partitions
    size_t possible_takers = 0;  // servers
  };

  // Both must outlive this.
  ExitCheck(const Manifest& manifest, const KnownPeers& peers, Options options);

  // `held`: all that this server announces. `view`: what it follows.
  Finding Look(absl::Span<const PartitionRef> held, const ClusterView& view,
               absl::Time now) const;

 private:
  // Whether `ref` has another owner that may come to hold it.
  bool HasTaker(const PartitionRef& ref, const ClusterView& view,
                absl::Time now) const;
  size_t PossibleTakers(absl::Time now) const;
  // Whoever was asked since then has answered in the last `time`.
  absl::Time Since(absl::Time now, absl::Duration time) const {
    return std::max(options_.began, now - time);
  }
  // Whoever has not answered yet may still do so.
  bool IsEarly(absl::Time now, absl::Duration time) const {
    return now < options_.began + time;
  }

  const Manifest& manifest_;
  const KnownPeers& peers_;
  const Options options_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_REBALANCE_EXIT_CHECK_H_
