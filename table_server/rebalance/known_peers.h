#ifndef ENGRAM_TABLE_SERVER_REBALANCE_KNOWN_PEERS_H_
#define ENGRAM_TABLE_SERVER_REBALANCE_KNOWN_PEERS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/base/mutex.h"
#include "core/membership/member.h"
#include "core/model/manifest.h"
#include "engram/v1/table.pb.h"
#include "table_server/peers/peer_source.h"
#include "table_server/rebalance/holdings.h"

namespace engram {

// What the peers have said of themselves. Times are those at which they were
// asked: what an answer says was true at some time after that.
//
// Thread safety: all methods may be called concurrently.
class KnownPeers {
 public:
  explicit KnownPeers(const Manifest& manifest) : holdings_(manifest) {}

  // These are the peers, by name. Others are forgotten.
  void Retain(absl::Span<const Member> peers);
  enum class News {
    kIgnored,  // of none of the peers, or of an earlier process than was heard
    kAsBefore,
    kRestarted,  // of a later process than was heard before
  };
  // `held`: of response.held().
  News Heard(const std::string& name, const v1::ExchangeResponse& response,
             std::vector<PartitionRef> held, absl::Time asked);
  // A call of it failed. True: the one before, if any, did not.
  bool Failed(absl::string_view name);

  // Of a peer that was asked at `since` or later; kSilent: it has not answered.
  enum class Outlook { kStays, kGoes, kSilent };
  Outlook OutlookOf(absl::string_view name, absl::Time since) const;
  struct Outlooks {
    size_t stay = 0;
    size_t go = 0;
    size_t silent = 0;
  };
  Outlooks CountOutlooks(absl::Time since) const;
  bool IsHeard(absl::string_view name, absl::Time since) const {
    return OutlookOf(name, since) != Outlook::kSilent;
  }
  // By name, those asked at `since` or later with a view of another digest.
  std::vector<std::string> ViewsOtherThan(absl::string_view digest,
                                          absl::Time since) const;

  // As those of Holdings.
  std::vector<PartitionRef> OnlyHere(absl::Span<const PartitionRef> held,
                                     const ClusterView& view,
                                     absl::Time since) const {
    return holdings_.OnlyHere(held, view, since);
  }
  std::vector<PartitionRef> HeldByNone(absl::Span<const PartitionRef> refs,
                                       absl::Time since) const {
    return holdings_.HeldByNone(refs, since);
  }
  std::vector<PartitionHolder> HoldersOf(const PartitionRef& ref,
                                         absl::Time since) const;

 private:
  struct Peer {
    std::string address;
    std::string view_digest;
    uint64_t instance_id = 0;  // 0: not heard yet
    bool goes = false;         // for good, or its process ends
    bool failing = false;
    absl::Time asked = absl::InfinitePast();
  };

  static Outlook OutlookOf(const Peer& peer, absl::Time since) {
    if (peer.asked < since) return Outlook::kSilent;
    return peer.goes ? Outlook::kGoes : Outlook::kStays;
  }

  Holdings holdings_;
  mutable Mutex mutex_;
  absl::btree_map<std::string, Peer> peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_REBALANCE_KNOWN_PEERS_H_
