// How HandOver gives up what others own: who is asked, who has acknowledged,
// and when it goes.

#include <algorithm>
#include <utility>

#include "table_server/rebalance/hand_over.h"

namespace engram {
namespace {

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
  const ClusterView& view = *view_;
  const uint32_t member = MemberIndex(view, peer);
  const auto is_owner = [&](size_t number) {
    const PartitionIndex::Place place = index_.At(number);
    return Contains(view.Owners(place.layer_index, place.ref.partition),
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

}  // namespace engram
