#ifndef ENGRAM_TABLE_SERVER_LOADING_STORED_COPIES_H_
#define ENGRAM_TABLE_SERVER_LOADING_STORED_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/base/mutex.h"
#include "table_server/store/local_store.h"
#include "table_server/tier/damaged_copies.h"

namespace engram {

// The copies in a local store of a server's partitions: which of them may be
// relied on, what makes room for others, what has yet to be put.
//
// Room for a copy is made by those that nobody wants or uses; for one of a
// partition that is cold, by those of partitions that are whole in memory as
// well: these can do without, and get theirs back when there is room.
//
// Thread safety: all methods may be called concurrently, for one partition by
// one thread at a time, but for TakeUnkept and EndRetry.
class StoredCopies {
 public:
  struct Options {
    // After a copy could not be put, doubled each time up to the longest.
    absl::Duration retry = absl::Minutes(1);
    absl::Duration longest_retry = absl::Hours(1);
    // For a read that is just dropping a copy which is to be put or removed,
    // and for a copy that another thread removes to make room. Waited for by
    // the machine's clock, on the thread of the caller.
    absl::Duration longest_wait = absl::Seconds(10);
    const Clock* clock = &Clock::Steady();
  };
  enum class Place { kHost, kCold };  // of a partition's rows

  // Both must outlive it.
  StoredCopies(LocalStore& local, DamagedCopies& damaged, Options options);
  // Damaged ones are removed, so that nobody relies on them after a restart.
  // REQUIRES: no rows are being fetched.
  ~StoredCopies();

  // Not removed for others from now on.
  void SetWanted(absl::Span<const PartitionRef> wanted);

  // False: its copy is just being put or removed. Otherwise Loaded or
  // LoadFailed follows.
  bool BeginLoad(const PartitionRef& ref);
  // `kept`: whether it has a copy; without one TakeUnkept comes up with it.
  void Loaded(const PartitionRef& ref, Place place, bool kept);
  void LoadFailed(const PartitionRef& ref);
  // Of what is loaded. True: its rows may be given back, nobody reads them to
  // put them. False: somebody does, until EndRetry says that it is to be freed.
  bool BeginFree(const PartitionRef& ref);
  // Its rows are given back. A damaged copy is removed. Does not wait.
  void Freed(const PartitionRef& ref);

  // There is one, and nothing is known against it.
  bool HasSound(const PartitionRef& ref) const {
    return local_.Has(ref) && !damaged_.Has(ref);
  }
  // Puts it and makes room for it. RESOURCE_EXHAUSTED: there is none;
  // UNAVAILABLE: whatever else the store says.
  absl::Status Keep(const PartitionRef& ref, absl::Span<const std::byte> packed,
                    Place place);
  // It is not what was put, for the reason that `status` gives.
  void DropDamaged(const PartitionRef& ref, const absl::Status& status);

  // A partition, whole in memory, that has no copy and is due to get one: Keep
  // and EndRetry follow. Nothing: there is none.
  std::optional<PartitionRef> TakeUnkept();
  // True: BeginFree has been told meanwhile; the partition is to be freed.
  [[nodiscard]] bool EndRetry(const PartitionRef& ref, bool kept);

  uint64_t unkept() const;  // whole in memory, without a copy
  uint64_t damaged_found() const { return damaged_.found(); }

 private:
  enum class Use { kLoading, kHost, kCold, kFreeing };
  struct Retry {
    absl::Time at;
    absl::Duration delay;
  };

  // Removes what is least needed. True: another Put may succeed, also as others
  // have removed something since there were `removals_seen`.
  bool MakeRoom(Place place, uint64_t removals_seen);
  std::optional<PartitionRef> LeastNeeded(const std::vector<PartitionRef>& kept,
                                          Place place) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WaitForRemoval(uint64_t removals_seen)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool RemoveFor(const PartitionRef& ref);  // whether it is gone
  absl::Status Remove(const PartitionRef& ref);
  // Does it again while it is ABORTED, for a while.
  absl::Status Persist(absl::FunctionRef<absl::Status()> change) const;
  void RemovedDamaged(const PartitionRef& ref, const absl::Status& removed);
  void SetFreeing(const PartitionRef& ref)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool UsedAs(const PartitionRef& ref, Use use) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddUnkept(const PartitionRef& ref, absl::Duration delay)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t removals() const;

  LocalStore& local_;
  DamagedCopies& damaged_;
  const Options options_;

  mutable Mutex mutex_;
  CondVar removed_;
  std::set<PartitionRef> wanted_ ABSL_GUARDED_BY(mutex_);
  std::map<PartitionRef, Use> uses_ ABSL_GUARDED_BY(mutex_);
  // Copies that are put or removed by a thread that does not load them.
  std::set<PartitionRef> changing_ ABSL_GUARDED_BY(mutex_);
  std::map<PartitionRef, Retry> unkept_ ABSL_GUARDED_BY(mutex_);
  std::set<PartitionRef> retried_ ABSL_GUARDED_BY(mutex_);    // of changing_
  std::set<PartitionRef> free_then_ ABSL_GUARDED_BY(mutex_);  // of retried_
  size_t removing_ ABSL_GUARDED_BY(mutex_) = 0;               // threads
  uint64_t removals_ ABSL_GUARDED_BY(mutex_) = 0;             // that have ended
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_STORED_COPIES_H_
