#include "table_server/loading/stored_copies.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/backoff.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/status_annotate.h"
#include "table_server/loading/verified_sources.h"

namespace engram {
namespace {

// That cannot be removed: a disk that removes nothing is not asked for all.
constexpr int kMostVictims = 8;

// Whatever is wrong with a copy that is put, the rows are right: the load may
// be tried again, and nothing is said against the checkpoint.
absl::Status Retryable(const absl::Status& status) {
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  return absl::UnavailableError(status.message());
}

}  // namespace

StoredCopies::StoredCopies(LocalStore& local, DamagedCopies& damaged,
                           Options options)
    : local_(local), damaged_(damaged), options_(options) {}

StoredCopies::~StoredCopies() {
  for (const PartitionRef& ref : damaged_.List()) {
    RemovedDamaged(ref, Remove(ref));
  }
}

void StoredCopies::SetWanted(absl::Span<const PartitionRef> wanted) {
  MutexLock lock(&mutex_);
  wanted_ = {wanted.begin(), wanted.end()};
}

bool StoredCopies::BeginLoad(const PartitionRef& ref) {
  MutexLock lock(&mutex_);
  if (changing_.contains(ref)) return false;
  return uses_.emplace(ref, Use::kLoading).second;
}

void StoredCopies::Loaded(const PartitionRef& ref, Place place, bool kept) {
  MutexLock lock(&mutex_);
  uses_[ref] = place == Place::kHost ? Use::kHost : Use::kCold;
  if (!kept) AddUnkept(ref, options_.retry);
}

void StoredCopies::LoadFailed(const PartitionRef& ref) {
  MutexLock lock(&mutex_);
  uses_.erase(ref);
}

bool StoredCopies::BeginFree(const PartitionRef& ref) {
  MutexLock lock(&mutex_);
  if (retried_.contains(ref)) {
    free_then_.insert(ref);
    return false;
  }
  SetFreeing(ref);
  return true;
}

// From here on nobody reads its rows to put them.
void StoredCopies::SetFreeing(const PartitionRef& ref) {
  uses_[ref] = Use::kFreeing;
  unkept_.erase(ref);
}

void StoredCopies::Freed(const PartitionRef& ref) {
  bool remove = damaged_.Has(ref);
  {
    MutexLock lock(&mutex_);
    remove = remove && changing_.insert(ref).second;
    uses_.erase(ref);
  }
  if (!remove) return;
  // Once: whoever frees must not wait. It stays damaged until it is loaded.
  RemovedDamaged(ref, local_.Remove(ref));
  MutexLock lock(&mutex_);
  changing_.erase(ref);
}

absl::Status StoredCopies::Keep(const PartitionRef& ref,
                                absl::Span<const std::byte> packed,
                                Place place) {
  absl::Status status;
  uint64_t removals_seen = 0;
  do {
    removals_seen = removals();
    status = Persist([&] { return local_.Put(ref, packed); });
  } while (absl::IsResourceExhausted(status) && MakeRoom(place, removals_seen));
  if (status.ok()) damaged_.Erase(ref);
  return Retryable(Annotate(
      status, absl::StrCat(NameOf(ref), " to ", local_.description())));
}

absl::Status StoredCopies::Remove(const PartitionRef& ref) {
  return Persist([&] { return local_.Remove(ref); });
}

absl::Status StoredCopies::Persist(
    absl::FunctionRef<absl::Status()> change) const {
  const absl::Time deadline = Clock::Steady().Now() + options_.longest_wait;
  absl::Status status = change();
  for (uint32_t tries = 1; absl::IsAborted(status); ++tries) {
    const absl::Duration left = deadline - Clock::Steady().Now();
    if (left <= absl::ZeroDuration()) break;
    absl::SleepFor(std::min(left, BackoffDelay({}, tries)));
    status = change();
  }
  return status;
}

void StoredCopies::DropDamaged(const PartitionRef& ref,
                               const absl::Status& status) {
  spdlog::warn("removed from the local store: {}",
               std::string(status.message()));
  damaged_.Add(ref);
  RemovedDamaged(ref, Remove(ref));
}

// What cannot be removed stays damaged, and so is not relied on.
void StoredCopies::RemovedDamaged(const PartitionRef& ref,
                                  const absl::Status& removed) {
  if (removed.ok()) {
    damaged_.Erase(ref);
  } else {
    spdlog::error("{} is damaged in {} and cannot be removed: {}", NameOf(ref),
                  local_.description(), std::string(removed.message()));
  }
}

bool StoredCopies::MakeRoom(Place place, uint64_t removals_seen) {
  std::vector<PartitionRef> kept = local_.Partitions();
  for (int tries = 0; tries < kMostVictims; ++tries) {
    std::optional<PartitionRef> least;
    {
      MutexLock lock(&mutex_);
      if (removals_ != removals_seen) return true;
      least = LeastNeeded(kept, place);
      if (!least.has_value()) return WaitForRemoval(removals_seen);
      changing_.insert(*least);
      ++removing_;
    }
    if (RemoveFor(*least)) return true;
    std::erase(kept, *least);  // the next one, then
  }
  return false;
}

std::optional<PartitionRef> StoredCopies::LeastNeeded(
    const std::vector<PartitionRef>& kept, Place place) const {
  std::optional<PartitionRef> in_memory;
  for (const PartitionRef& ref : kept) {
    if (changing_.contains(ref)) continue;
    const auto use = uses_.find(ref);
    if (use == uses_.end() && !wanted_.contains(ref)) return ref;
    if (use != uses_.end() && use->second == Use::kHost) in_memory = ref;
  }
  return place == Place::kCold ? in_memory : std::nullopt;
}

bool StoredCopies::WaitForRemoval(uint64_t removals_seen) {
  const absl::Time deadline = Clock::Steady().Now() + options_.longest_wait;
  while (removing_ > 0 && removals_ == removals_seen) {
    const absl::Duration left = deadline - Clock::Steady().Now();
    if (left <= absl::ZeroDuration()) return false;
    removed_.WaitFor(&mutex_, left);
  }
  return removals_ != removals_seen;
}

bool StoredCopies::RemoveFor(const PartitionRef& ref) {
  const absl::Status removed = Remove(ref);
  // Also if only that it is gone could not be made to last.
  const bool gone = !local_.Has(ref);
  if (gone) {
    damaged_.Erase(ref);
    spdlog::info("{} made room in the local store", NameOf(ref));
  } else {
    spdlog::warn("{}: {}", NameOf(ref), std::string(removed.message()));
  }
  MutexLock lock(&mutex_);
  changing_.erase(ref);
  --removing_;
  if (gone) ++removals_;
  if (gone && UsedAs(ref, Use::kHost)) AddUnkept(ref, options_.retry);
  removed_.NotifyAll();
  return gone;
}

bool StoredCopies::UsedAs(const PartitionRef& ref, Use use) const {
  const auto found = uses_.find(ref);
  return found != uses_.end() && found->second == use;
}

void StoredCopies::AddUnkept(const PartitionRef& ref, absl::Duration delay) {
  unkept_[ref] = {options_.clock->Now() + delay, delay};
}

std::optional<PartitionRef> StoredCopies::TakeUnkept() {
  MutexLock lock(&mutex_);
  if (unkept_.empty()) return std::nullopt;
  const absl::Time now = options_.clock->Now();
  for (const auto& [ref, retry] : unkept_) {
    if (retry.at > now || !changing_.insert(ref).second) continue;
    retried_.insert(ref);
    return ref;
  }
  return std::nullopt;
}

bool StoredCopies::EndRetry(const PartitionRef& ref, bool kept) {
  MutexLock lock(&mutex_);
  changing_.erase(ref);
  retried_.erase(ref);
  const bool free = free_then_.erase(ref) > 0;
  if (free) {
    SetFreeing(ref);
  } else if (kept) {
    unkept_.erase(ref);
  } else {
    AddUnkept(ref, std::min(2 * unkept_[ref].delay, options_.longest_retry));
  }
  return free;
}

uint64_t StoredCopies::unkept() const {
  MutexLock lock(&mutex_);
  return unkept_.size();
}

uint64_t StoredCopies::removals() const {
  MutexLock lock(&mutex_);
  return removals_;
}

}  // namespace engram
