#ifndef ENGRAM_TABLE_SERVER_REBALANCE_REBALANCER_H_
#define ENGRAM_TABLE_SERVER_REBALANCE_REBALANCER_H_

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/membership/member_source.h"
#include "core/membership/member_watcher.h"
#include "core/model/manifest.h"
#include "table_server/loading/partition_store.h"
#include "table_server/membership/member_tracker.h"
#include "table_server/partitions/partition_set.h"
#include "table_server/peers/peer_calls.h"
#include "table_server/peers/peer_source.h"
#include "table_server/rebalance/exchange_answers.h"
#include "table_server/rebalance/hand_over.h"
#include "table_server/rebalance/known_peers.h"
#include "table_server/rebalance/load_pool.h"
#include "table_server/rebalance/peer_exchange.h"
#include "table_server/rebalance/rebalance_metrics.h"

namespace engram {

// Makes the server hold what it owns, whoever the members are at the time:
// follows the member source and the peers, loads what it owns by the view,
// and gives up what others own once they have it. Decisions are those of
// MemberTracker and HandOver; this is the thread that carries them out.
//
// Thread safety: all methods may be called concurrently, Start and Stop on one
// thread.
class Rebalancer {
 public:
  struct Options {
    MemberTracker::Options membership;
    uint32_t replicas = 1;
    std::vector<LayerId> layers;  // to serve; empty: all
    HandOver::Options hand_over;
    LoadPool::Options loading;  // by the clock below
    absl::Duration exchange_interval = absl::Seconds(1);
    MemberWatcher::Options watching;
    const Clock* clock = &Clock::Steady();
  };
  // All must outlive the rebalancer.
  struct Parts {
    const Manifest* manifest = nullptr;
    PartitionSet* partitions = nullptr;
    RebalanceMetrics* metrics = nullptr;
    std::shared_ptr<MemberSource> members;
  };

  Rebalancer(Parts parts, Options options);
  ~Rebalancer();  // Stop

  // Told on the rebalancer's thread.
  struct FirstLoad {
    // Now and then until it has ended.
    std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress;
    // Once: the server is a member and holds all that it owns by its view, so
    // long after it had its first view.
    std::function<void(absl::Duration took)> ready;
  };

  // `store` and `peers` must stay until Stop has returned; the calls of `peers`
  // must have ended before the rebalancer is destroyed.
  void Start(PartitionStore& store, PeerCalls& peers, FirstLoad first_load);
  // No more loads, calls or changes; joins the threads.
  void Stop();

  // OK: ready. DEADLINE_EXCEEDED: not yet. FAILED_PRECONDITION or DATA_LOSS: a
  // partition that the server owns cannot be had as the manifest wants it; the
  // server tries on, but its owner should end it.
  absl::Status WaitUntilReady(absl::Time deadline);
  // Empty when ready.
  std::string not_ready_reason();

  // Before the process ends: waits until others hold whatever only this server
  // holds, and leaves the cluster for good if they would not come to hold it
  // otherwise (ExitCheck). True: nothing is lost. False: `deadline` passed,
  // nobody is there to take it, or Stop was called.
  bool HandOverAll(absl::Time deadline);

  // The rows that the server has of a partition are not what was loaded, found
  // by somebody who has a lease of it: the partition is given up and loaded
  // anew. Does not block.
  void OnDamaged(const PartitionRef& ref);

  // Null: none yet.
  std::shared_ptr<const ClusterView> view() const { return hand_over_.view(); }

  // What calls of peers and tools reach.
  ClusterCalls& calls() { return answers_; }
  // Who else holds a partition, for a PeerSource.
  std::vector<PartitionHolder> HoldersOf(const PartitionRef& ref) const {
    return known_.HoldersOf(ref, HeardSince(options_.clock->Now()));
  }

 private:
  struct EndedLoad {
    PartitionRef ref;
    absl::Status status;
  };
  // Answered for no more; in memory while gathers from before read it.
  struct Dropping {
    LeaseEpochs::Mark mark;
    std::vector<PartitionRef> partitions;
    bool damaged = false;
  };

  void Run();
  // Waits until there may be something to do, at least a little since
  // `last_tick`. False: the thread ends.
  bool AwaitTick(absl::Time last_tick);
  void Tick(absl::Time now);
  void TakeWhatWasTold(absl::Time now);
  void TakeAnswer(const PeerExchange::Answer& answer, absl::Time now);
  void FollowMembers(absl::Time now);
  void CheckOwnDeparture();
  absl::Status AdoptView(absl::Time now);
  void RefuseView(const absl::Status& status, bool changed, absl::Time now);

  void PaceLoads(absl::Time now);
  // What this server owns by the view and does not hold.
  std::vector<PartitionRef> MissingOf(const ClusterView& view) const;
  void OnLoadEnd(const PartitionRef& ref, const absl::Status& status);
  void TakeEndedLoads(absl::Time now);
  void TakeLoaded(const PartitionRef& ref);
  void TakeFailedLoad(const EndedLoad& load, absl::Time now);
  void GiveUpDamaged(absl::Time now);
  void CarryOut(absl::Time now);
  void FreeUnused();
  void SendExchanges(absl::Time now);
  void PublishState(absl::Time now);
  void FollowFirstLoad(absl::Time now);

  // Peers that were asked since then count as being there.
  absl::Time HeardSince(absl::Time now) const;
  bool IsMemberOf(const ClusterView& view) const;
  std::vector<Member> FollowedMembers() const;
  uint64_t PartitionBytes() const;
  std::string WaitingFor(const HandOver::Counts& counts, absl::Time now) const;
  std::string UnreadyReason() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string WaitingToFree(const ClusterView& view, absl::Time now) const;
  void Wake();

  const Parts parts_;
  const Options options_;
  const std::vector<LayerPartitionCount> layers_;
  HandOver hand_over_;
  KnownPeers known_;
  ExchangeAnswers answers_;

  // From Start on.
  PartitionStore* store_ = nullptr;
  PeerCalls* peers_ = nullptr;
  std::unique_ptr<PeerExchange> exchange_;

  // Of the rebalancer's thread alone.
  MemberTracker tracker_;
  bool leaving_ = false;
  std::string own_departure_;  // what is wrong with it; empty: nothing
  std::string view_refusal_;   // why the tracker's view is not followed
  absl::Time view_tried_ = absl::InfinitePast();
  absl::Time refusal_told_ = absl::InfinitePast();
  std::string last_failure_;  // of the load that ended last
  uint64_t failures_untold_ = 0;
  absl::Time failures_told_ = absl::InfinitePast();
  std::deque<Dropping> dropping_;
  std::optional<FirstLoad> first_load_;  // until it has ended
  absl::Time first_view_ = absl::InfiniteFuture();
  uint64_t first_load_bytes_ = 0;

  std::atomic<bool> exiting_{false};

  Mutex mutex_;
  CondVar changed_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
  bool leave_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status fatal_ ABSL_GUARDED_BY(mutex_);
  std::string waiting_for_ ABSL_GUARDED_BY(mutex_);
  std::optional<MemberWatcher::Observation> observation_
      ABSL_GUARDED_BY(mutex_);
  std::vector<EndedLoad> ended_loads_ ABSL_GUARDED_BY(mutex_);
  std::set<PartitionRef> damaged_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<LoadPool> pool_;
  std::unique_ptr<MemberWatcher> watcher_;
  std::thread thread_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_REBALANCE_REBALANCER_H_
