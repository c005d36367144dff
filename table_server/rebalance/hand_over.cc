#include "table_server/rebalance/hand_over.h"

#include <algorithm>
#include <utility>

#include "core/base/backoff.h"
#include "core/base/check.h"

namespace engram {
namespace {

// When what has not failed may be loaded: before what has, and after what is to
// be loaded first.
constexpr absl::Time kInItsTurn = absl::UnixEpoch();

}  // namespace

HandOver::HandOver(const Manifest& manifest, Options options)
    : index_(manifest), options_(options), slots_(index_.size()) {
  tally_[kAbsent][0] = slots_.size();
}

size_t HandOver::NumberOf(const PartitionRef& ref) const {
  const std::optional<size_t> number = index_.Find(ref);
  ENGRAM_CHECK(number.has_value());
  return *number;
}

void HandOver::Set(size_t number, State state, bool owned) {
  Slot& slot = slots_[number];
  --tally_[slot.state][slot.owned ? 1 : 0];
  ++tally_[state][owned ? 1 : 0];
  slot = {state, owned};
}

void HandOver::QueueLoad(size_t number) {
  absl::Time at = kInItsTurn;
  if (const auto found = failures_.find(number); found != failures_.end()) {
    at = std::max(at, found->second.retry_at);
  }
  if (const auto found = damage_.find(number); found != damage_.end()) {
    at = std::max(at, found->second.retry_at);
  }
  to_load_.emplace(at, number);
}

void HandOver::SetView(std::shared_ptr<const ClusterView> view) {
  ENGRAM_CHECK(view != nullptr);
  MutexLock lock(&mutex_);
  view_ = std::move(view);
  ++epoch_;
  acknowledged_.clear();
  to_load_.clear();
  for (size_t i = 0; i < slots_.size(); ++i) {
    const PartitionIndex::Place place = index_.At(i);
    const bool owned = view_->Owns(place.layer_index, place.ref.partition);
    State state = slots_[i].state;
    if (IsAnnounced(slots_[i])) {
      state = kHeld;
      lingering_.erase(i);
    }
    Set(i, state, owned);
    if (!owned) {
      failures_.erase(i);
      damage_.erase(i);
    } else if (state == kAbsent) {
      QueueLoad(i);
    }
  }
}

std::shared_ptr<const ClusterView> HandOver::view() const {
  MutexLock lock(&mutex_);
  return view_;
}

std::optional<PartitionRef> HandOver::TakeLoad(absl::Time now) {
  MutexLock lock(&mutex_);
  if (to_load_.empty() || to_load_.begin()->first > now) return std::nullopt;
  const size_t number = to_load_.begin()->second;
  to_load_.erase(to_load_.begin());
  SetState(number, kLoading);
  return index_.At(number).ref;
}

HandOver::Loaded HandOver::LoadEnded(const PartitionRef& ref) {
  const size_t number = NumberOf(ref);
  MutexLock lock(&mutex_);
  ENGRAM_CHECK(slots_[number].state == kLoading);
  failures_.erase(number);
  const bool keep = slots_[number].owned;
  SetState(number, keep ? kHeld : kFreeing);
  return keep ? Loaded::kKeep : Loaded::kDiscard;
}

void HandOver::LoadFailed(const PartitionRef& ref, absl::Time now) {
  const size_t number = NumberOf(ref);
  MutexLock lock(&mutex_);
  ENGRAM_CHECK(slots_[number].state == kLoading);
  ++failed_loads_;
  SetState(number, kAbsent);
  if (!slots_[number].owned) return;
  Failures& failures = failures_[number];
  failures.retry_at =
      now + BackoffDelay({.first = options_.retry_load,
                          .longest = options_.longest_retry_load},
                         ++failures.in_a_row, /*factor=*/1);
  QueueLoad(number);
}

void HandOver::Dropped(const PartitionRef& ref) {
  const size_t number = NumberOf(ref);
  MutexLock lock(&mutex_);
  ENGRAM_CHECK(slots_[number].state == kFreeing);
  SetState(number, kAbsent);
  if (slots_[number].owned) QueueLoad(number);
}

bool HandOver::GiveUpDamaged(const PartitionRef& ref, absl::Time now) {
  const size_t number = NumberOf(ref);
  MutexLock lock(&mutex_);
  const Slot& slot = slots_[number];
  if (!IsAnnounced(slot) && slot.state != kWithdrawn) return false;
  acknowledged_.erase(number);
  lingering_.erase(number);
  if (slot.owned) CountDamage(number, now);
  SetState(number, kFreeing);
  return true;
}

// A disk that damages whatever is put on it must not keep the network busy.
void HandOver::CountDamage(size_t number, absl::Time now) {
  Damage& damage = damage_[number];
  if (now - damage.last >= options_.damage_forgotten_after) damage = {};
  damage.last = now;
  if (damage.in_a_row++ == 0) return;
  damage.retry_at =
      now + BackoffDelay({.first = options_.retry_load,
                          .longest = options_.longest_retry_damaged},
                         damage.in_a_row - 1, /*factor=*/1);
}

bool HandOver::IsTriedLater(size_t number) const {
  const auto damage = damage_.find(number);
  return failures_.contains(number) ||
         (damage != damage_.end() && damage->second.in_a_row > 1);
}

HandOver::Counts HandOver::counts() const {
  MutexLock lock(&mutex_);
  Counts counts;
  for (const auto& by_owned : tally_) counts.owned += by_owned[1];
  counts.to_load = ToLoad();
  counts.loading = Tally(kLoading);
  counts.to_free = tally_[kHeld][0];
  const uint64_t taken_over =
      Tally(kTakenOver) + Tally(kConfirming) + Tally(kConfirmed);
  counts.held = Tally(kHeld) + taken_over;
  counts.to_confirm = Tally(kConfirming);
  counts.lingering = taken_over + Tally(kWithdrawn) + Tally(kFreeing);
  counts.failed_loads = failed_loads_;
  return counts;
}

std::vector<PartitionRef> HandOver::HeldPartitions() const {
  std::vector<PartitionRef> held;
  MutexLock lock(&mutex_);
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (IsAnnounced(slots_[i])) held.push_back(index_.At(i).ref);
  }
  return held;
}

void HandOver::LoadFirst(absl::Span<const PartitionRef> partitions) {
  MutexLock lock(&mutex_);
  for (const PartitionRef& ref : partitions) {
    const std::optional<size_t> number = index_.Find(ref);
    if (!number.has_value()) continue;
    if (to_load_.erase({kInItsTurn, *number}) == 0) continue;
    to_load_.emplace(absl::InfinitePast(), *number);
  }
}

std::vector<PartitionRef> HandOver::PartitionsToLoad() const {
  std::vector<PartitionRef> to_load;
  MutexLock lock(&mutex_);
  if (ToLoad() == 0) return to_load;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const State state = slots_[i].state;
    const bool here =
        state != kAbsent && state != kLoading && state != kFreeing;
    if (!slots_[i].owned || here || IsTriedLater(i)) continue;
    to_load.push_back(index_.At(i).ref);
  }
  return to_load;
}

}  // namespace engram
