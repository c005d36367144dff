#ifndef ENGRAM_TABLE_SERVER_REBALANCE_HAND_OVER_H_
#define ENGRAM_TABLE_SERVER_REBALANCE_HAND_OVER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/base/mutex.h"
#include "core/model/manifest.h"
#include "table_server/rebalance/cluster_view.h"
#include "table_server/rebalance/partition_index.h"

namespace engram {

// What one server does with each partition when the view changes, so that at
// every moment somebody holds it: pure decisions, no I/O.
//
//          owned          verified                  acknowledged by all
//   absent -------> loading -------> held, announced -- owners, not owned, --+
//     ^                                 ^       |  ^    linger, acknowledged |
//     |                            owned|again  +--+    by all again         v
//     +--- dropped --- freeing <---- answer_linger over ------------ withdrawn,
//                    (leases end)                                still answers
//
// What is held and turns out to be damaged is dropped at once, as if a crash
// had taken this copy.
//
// A partition that is not owned is given up (withdrawn) only when every owner
// by the server's view has acknowledged, under the same digest, that it holds
// it. An owner acknowledges only what it holds, announced, and owns itself. An
// acknowledgement counts only in the epoch in which it was asked for: an epoch
// is the time from one SetView to the next. So whoever gives up has not owned
// the partition since that epoch began, and all owners acknowledged after that.
//
// Then somebody always holds it. For take any moment, and of all the times that
// the partition has been given up until then the one whose epoch began last.
// Its owners acknowledged still later, while they owned it. Had one of them
// given it up since, that would have been in an epoch which began later still;
// there is none. So they all hold it, R of them, however the views of the
// servers differ and change to and fro, and whatever messages are late or lost;
// only a crash, or damage to it, takes a copy. The argument does not need the
// digest: that keeps servers from freeing memory for the sake of a view which
// others do not share.
//
// A crash in the linger takes nothing either: after it all owners are asked
// again, and acknowledge within a short time, before the partition is given up.
// If one of them is known to have been started again, all begins anew with the
// first acknowledgement: clients are to have the whole linger to hear of it.
//
// With no owners at all (no members, or a layer that is not placed) nothing is
// given up.
//
// Thread safety: all methods may be called concurrently.
class HandOver {
 public:
  struct Options {
    // For clients to hear of the new holders while the old one still announces.
    absl::Duration announce_linger = absl::Seconds(5);
    // For gathers that were routed before the withdrawal was heard of.
    absl::Duration answer_linger = absl::Seconds(10);
    // How old the last acknowledgements may be when a partition is given up.
    absl::Duration confirm_within = absl::Seconds(10);
    // After a failed load, doubled each time up to the longest.
    absl::Duration retry_load = absl::Seconds(1);
    absl::Duration longest_retry_load = absl::Minutes(1);
    // What is found damaged is loaded anew at once; found so again, after
    // retry_load, doubled each time up to the longest, until it has not been
    // for a while.
    absl::Duration longest_retry_damaged = absl::Minutes(10);
    absl::Duration damage_forgotten_after = absl::Hours(1);
  };
  // Partitions to ask one peer about, in the epoch in which they are asked.
  struct Ask {
    std::string peer;
    std::string digest;
    uint64_t epoch = 0;
    std::vector<PartitionRef> partitions;  // ascending
  };
  // What has become due. To be done in this order.
  struct Actions {
    std::vector<PartitionRef> announce;  // withdrawn before, owned again
    std::vector<PartitionRef> withdraw;  // say that it is not here, but answer
    std::vector<PartitionRef> drop;      // answer no more; free when unused
  };
  struct Counts {
    uint64_t owned = 0;
    uint64_t to_load = 0;  // with those being loaded
    uint64_t loading = 0;
    uint64_t held = 0;          // announced
    uint64_t to_free = 0;       // held, not owned, not acknowledged by all
    uint64_t lingering = 0;     // acknowledged by all, still in memory
    uint64_t to_confirm = 0;    // of those, asked about again
    uint64_t failed_loads = 0;  // since the start
  };

  HandOver(const Manifest& manifest, Options options);

  // A new epoch. What a load under way is for may not be owned any more.
  void SetView(std::shared_ptr<const ClusterView> view);
  std::shared_ptr<const ClusterView> view() const;  // null: none yet

  // The next partition to load, in order of layer and partition, those that
  // failed after the others; it counts as loading until LoadEnded or
  // LoadFailed.
  std::optional<PartitionRef> TakeLoad(absl::Time now);
  enum class Loaded {
    kKeep,    // announce it; from now on peers may be told that it is here
    kDiscard  // not owned any more, nobody has been told: free it, then Dropped
  };
  Loaded LoadEnded(const PartitionRef& ref);
  // Nothing of it is left in memory.
  void LoadFailed(const PartitionRef& ref, absl::Time now);

  // What may be freed once the peers acknowledge it: one Ask for each owner
  // that has not acknowledged everything.
  std::vector<Ask> Asks() const;
  // `partitions`: of the Ask of that peer and epoch; others are ignored.
  void Acknowledged(absl::string_view peer, uint64_t epoch,
                    absl::Span<const PartitionRef> partitions, absl::Time now);
  // The process of `peer` is another than before: what it holds, it has brought
  // back since, and clients may not know of it yet. What it is an owner of and
  // was about to be given up is asked about and lingers anew.
  void PeerRestarted(absl::string_view peer);
  // Of `partitions`, those that a peer of the same digest may rely on.
  std::vector<PartitionRef> Acknowledge(
      absl::string_view digest,
      absl::Span<const PartitionRef> partitions) const;

  Actions Advance(absl::Time now);
  // A partition of Actions::drop, or one that LoadEnded discarded, is gone from
  // memory. If it is owned again by now, it is loaded anew.
  void Dropped(const PartitionRef& ref);
  // True: say that it is not here, answer no more, free it when unused, then
  // Dropped, after which it is loaded anew if it is owned: later and later if
  // this happens to it again and again. False: it is not here any more, and
  // nothing is to be done.
  [[nodiscard]] bool GiveUpDamaged(const PartitionRef& ref, absl::Time now);

  Counts counts() const;
  // Held and announced.
  std::vector<PartitionRef> HeldPartitions() const;
  // Owned and not there yet, but for those that are tried again later, as their
  // last load failed or they were damaged again.
  std::vector<PartitionRef> PartitionsToLoad() const;
  // Of those, these are to be loaded before all others.
  void LoadFirst(absl::Span<const PartitionRef> partitions);

 private:
  enum State : uint8_t {
    kAbsent,
    kLoading,
    kHeld,
    // Not owned, held by all owners:
    kTakenOver,   // clients come to know of them
    kConfirming,  // the owners are asked again
    kConfirmed,   // all have acknowledged again
    kWithdrawn,
    kFreeing,
    kStateCount
  };
  struct Slot {
    State state = kAbsent;
    bool owned = false;
  };
  struct Failures {
    uint32_t in_a_row = 0;
    absl::Time retry_at;
  };
  struct Damage {
    uint32_t in_a_row = 0;
    absl::Time last = absl::InfinitePast();
    absl::Time retry_at = absl::InfinitePast();
  };

  size_t NumberOf(const PartitionRef& ref) const;
  void Set(size_t number, State state, bool owned)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetState(size_t number, State state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Set(number, state, slots_[number].owned);
  }
  // Announced as before, the owners have yet to acknowledge.
  void AskAnew(size_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // All owners have acknowledged.
  void TakenOver(size_t number, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool IsAnnounced(const Slot& slot) {
    return slot.state >= kHeld && slot.state <= kConfirmed;
  }
  static bool IsAskedAbout(const Slot& slot) {
    return !slot.owned && (slot.state == kHeld || slot.state == kConfirming);
  }
  void QueueLoad(size_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountDamage(size_t number, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsTriedLater(size_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t ToLoad() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return tally_[kAbsent][1] + tally_[kLoading][1] + tally_[kFreeing][1];
  }
  uint64_t Tally(State state) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return tally_[state][0] + tally_[state][1];
  }

  const PartitionIndex index_;
  const Options options_;

  mutable Mutex mutex_;
  std::shared_ptr<const ClusterView> view_ ABSL_GUARDED_BY(mutex_);
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  // By number of the partition.
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);
  uint64_t tally_[kStateCount][2] ABSL_GUARDED_BY(mutex_) = {};  // [][owned]
  // Owned and absent, with the time from which on each may be loaded: the
  // earliest first.
  std::set<std::pair<absl::Time, size_t>> to_load_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<size_t, Failures> failures_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<size_t, Damage> damage_ ABSL_GUARDED_BY(mutex_);
  uint64_t failed_loads_ ABSL_GUARDED_BY(mutex_) = 0;
  // Asked about: the owners, as indices of members, that acknowledged it.
  absl::flat_hash_map<size_t, std::vector<uint32_t>> acknowledged_
      ABSL_GUARDED_BY(mutex_);
  // Taken over to withdrawn: how long it stays so, or has for confirming.
  std::map<size_t, absl::Time> lingering_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_REBALANCE_HAND_OVER_H_
