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

bool Contains(absl::Span<const uint32_t> values, uint32_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// members().size(): no member has this name.
uint32_t MemberIndex(const ClusterView& view, absl::string_view name) {
  const std::vector<Member>& members = view.members();
  const auto at = std::lower_bound(
      members.begin(), members.end(), name,
      [](const Member& m, absl::string_view n) { return m.name < n; });
  const bool found = at != members.end() && at->name == name;
  return static_cast<uint32_t>((found ? at : members.end()) - members.begin());
}

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
  const auto failures = failures_.find(number);
  to_load_.emplace(
      failures == failures_.end() ? kInItsTurn : failures->second.retry_at,
      number);
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

std::vector<HandOver::Ask> HandOver::Asks() const {
  std::vector<Ask> asks;
  MutexLock lock(&mutex_);
  if (tally_[kHeld][0] + Tally(kConfirming) == 0) return asks;
  asks.resize(view_->members().size());
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!IsAskedAbout(slots_[i])) continue;
    const PartitionIndex::Place place = index_.At(i);
    const auto done = acknowledged_.find(i);
    for (const uint32_t owner :
         view_->Owners(place.layer_index, place.ref.partition)) {
      if (done != acknowledged_.end() && Contains(done->second, owner)) {
        continue;
      }
      asks[owner].partitions.push_back(place.ref);
    }
  }
  for (size_t i = 0; i < asks.size(); ++i) {
    asks[i].peer = view_->members()[i].name;
    asks[i].digest = view_->digest();
    asks[i].epoch = epoch_;
  }
  asks.erase(
      std::remove_if(asks.begin(), asks.end(),
                     [](const Ask& ask) { return ask.partitions.empty(); }),
      asks.end());
  return asks;
}

void HandOver::Acknowledged(absl::string_view peer, uint64_t epoch,
                            absl::Span<const PartitionRef> partitions,
                            absl::Time now) {
  MutexLock lock(&mutex_);
  if (epoch != epoch_ || view_ == nullptr) return;
  const uint32_t member = MemberIndex(*view_, peer);
  for (const PartitionRef& ref : partitions) {
    const std::optional<size_t> number = index_.Find(ref);
    if (!number.has_value() || !IsAskedAbout(slots_[*number])) continue;
    const absl::Span<const uint32_t> owners =
        view_->Owners(index_.At(*number).layer_index, ref.partition);
    if (!Contains(owners, member)) continue;
    std::vector<uint32_t>& done = acknowledged_[*number];
    if (!Contains(done, member)) done.push_back(member);
    if (done.size() == owners.size()) TakenOver(*number, now);
  }
}

void HandOver::PeerRestarted(absl::string_view peer) {
  MutexLock lock(&mutex_);
  if (view_ == nullptr) return;
  const uint32_t member = MemberIndex(*view_, peer);
  const auto is_owner = [&](size_t number) {
    const PartitionIndex::Place place = index_.At(number);
    return Contains(view_->Owners(place.layer_index, place.ref.partition),
                    member);
  };
  for (auto& [number, done] : acknowledged_) std::erase(done, member);
  for (auto next = lingering_.begin(); next != lingering_.end();) {
    const auto at = next++;
    const size_t number = at->first;
    if (!IsAnnounced(slots_[number]) || !is_owner(number)) continue;
    lingering_.erase(at);
    AskAnew(number);
  }
}

void HandOver::AskAnew(size_t number) {
  acknowledged_.erase(number);
  SetState(number, kHeld);
}

void HandOver::TakenOver(size_t number, absl::Time now) {
  acknowledged_.erase(number);
  if (slots_[number].state == kConfirming) {
    SetState(number, kConfirmed);
    return;
  }
  SetState(number, kTakenOver);
  lingering_[number] = now + options_.announce_linger;
}

std::vector<PartitionRef> HandOver::Acknowledge(
    absl::string_view digest, absl::Span<const PartitionRef> partitions) const {
  std::vector<PartitionRef> relied_on;
  MutexLock lock(&mutex_);
  if (view_ == nullptr || view_->digest() != digest) return relied_on;
  for (const PartitionRef& ref : partitions) {
    const std::optional<size_t> number = index_.Find(ref);
    if (!number.has_value()) continue;
    const Slot& slot = slots_[*number];
    if (slot.owned && slot.state == kHeld) relied_on.push_back(ref);
  }
  return relied_on;
}

HandOver::Actions HandOver::Advance(absl::Time now) {
  Actions actions;
  MutexLock lock(&mutex_);
  for (auto next = lingering_.begin(); next != lingering_.end();) {
    const auto at = next++;
    const size_t number = at->first;
    const PartitionRef ref = index_.At(number).ref;
    const Slot slot = slots_[number];
    if (slot.state == kConfirmed) {
      actions.withdraw.push_back(ref);
      SetState(number, kWithdrawn);
      at->second = now + options_.answer_linger;
    } else if (slot.state == kWithdrawn && slot.owned) {
      actions.announce.push_back(ref);
      SetState(number, kHeld);
      lingering_.erase(at);
    } else if (at->second > now) {
      continue;
    } else if (slot.state == kWithdrawn) {
      actions.drop.push_back(ref);
      SetState(number, kFreeing);
      lingering_.erase(at);
    } else {  // the linger is over, or confirming took too long
      acknowledged_.erase(number);
      SetState(number, kConfirming);
      at->second = now + options_.confirm_within;
    }
  }
  return actions;
}

void HandOver::Dropped(const PartitionRef& ref) {
  const size_t number = NumberOf(ref);
  MutexLock lock(&mutex_);
  ENGRAM_CHECK(slots_[number].state == kFreeing);
  SetState(number, kAbsent);
  if (slots_[number].owned) QueueLoad(number);
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
    if (!slots_[i].owned || here || failures_.contains(i)) continue;
    to_load.push_back(index_.At(i).ref);
  }
  return to_load;
}

}  // namespace engram
