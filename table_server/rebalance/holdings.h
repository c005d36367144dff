#ifndef ENGRAM_TABLE_SERVER_REBALANCE_HOLDINGS_H_
#define ENGRAM_TABLE_SERVER_REBALANCE_HOLDINGS_H_

#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/base/mutex.h"
#include "core/model/manifest.h"
#include "table_server/rebalance/cluster_view.h"
#include "table_server/rebalance/partition_index.h"

namespace engram {

// What the other servers said that they hold, and when.
//
// Thread safety: all methods may be called concurrently.
class Holdings {
 public:
  struct Report {
    bool ready = false;
    bool draining = false;
    std::string view_digest;  // empty: it has no view
    absl::Time heard;
    std::vector<PartitionRef> held;  // those the table lacks are ignored
  };

  explicit Holdings(const Manifest& manifest) : index_(manifest) {}

  // Takes the place of what the peer said before.
  void Set(absl::string_view peer, const Report& report);
  void Remove(absl::string_view peer);  // of a peer not known: nothing

  // Of `held`, in its order, those that might be missing without this server:
  // of the owners by `view`, no other one heard since `since` holds it, has the
  // same view, is ready and not draining. Whoever else holds it may be about to
  // give it up, relying on this server.
  std::vector<PartitionRef> OnlyHere(absl::Span<const PartitionRef> held,
                                     const ClusterView& view,
                                     absl::Time since) const;

  // By name, the peers heard since `since` that hold `ref`, ready or not; those
  // that drain only where there are no others.
  std::vector<std::string> HoldersOf(const PartitionRef& ref,
                                     absl::Time since) const;

  // Of `refs`, in their order, those that no peer heard since `since` holds
  // that stays: one that drains may be gone before they are copied.
  std::vector<PartitionRef> HeldByNone(absl::Span<const PartitionRef> refs,
                                       absl::Time since) const;

 private:
  struct Peer {
    bool ready = false;
    bool draining = false;
    std::string view_digest;
    absl::Time heard;
    std::vector<bool> holds;  // by number of the partition
  };

  const PartitionIndex index_;
  mutable Mutex mutex_;
  absl::btree_map<std::string, Peer> peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_REBALANCE_HOLDINGS_H_
