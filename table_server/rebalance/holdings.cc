#include "table_server/rebalance/holdings.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace engram {

void Holdings::Set(absl::string_view peer, const Report& report) {
  Peer entry{.ready = report.ready,
             .draining = report.draining,
             .view_digest = report.view_digest,
             .heard = report.heard,
             .holds = std::vector<bool>(index_.size())};
  for (const PartitionRef& ref : report.held) {
    const std::optional<size_t> number = index_.Find(ref);
    if (number.has_value()) entry.holds[*number] = true;
  }
  MutexLock lock(&mutex_);
  peers_.insert_or_assign(std::string(peer), std::move(entry));
}

void Holdings::Remove(absl::string_view peer) {
  MutexLock lock(&mutex_);
  peers_.erase(std::string(peer));
}

std::vector<PartitionRef> Holdings::OnlyHere(
    absl::Span<const PartitionRef> held, const ClusterView& view,
    absl::Time since) const {
  std::vector<PartitionRef> only_here;
  MutexLock lock(&mutex_);
  std::vector<const Peer*> relied_on;  // by index of the member; or null
  for (const Member& member : view.members()) {
    const auto found = peers_.find(member.name);
    const Peer* peer = found == peers_.end() ? nullptr : &found->second;
    const bool counts = peer != nullptr && peer->ready && !peer->draining &&
                        peer->heard >= since &&
                        peer->view_digest == view.digest();
    relied_on.push_back(counts ? peer : nullptr);
  }
  for (const PartitionRef& ref : held) {
    const std::optional<size_t> number = index_.Find(ref);
    if (!number.has_value()) continue;
    const absl::Span<const uint32_t> owners =
        view.Owners(index_.At(*number).layer_index, ref.partition);
    const bool elsewhere =
        std::any_of(owners.begin(), owners.end(), [&](uint32_t owner) {
          const Peer* peer = relied_on[owner];
          return peer != nullptr && peer->holds[*number];
        });
    if (!elsewhere) only_here.push_back(ref);
  }
  return only_here;
}

std::vector<std::string> Holdings::HoldersOf(const PartitionRef& ref,
                                             absl::Time since) const {
  const std::optional<size_t> number = index_.Find(ref);
  std::vector<std::string> holders;
  std::vector<std::string> draining;
  if (!number.has_value()) return holders;
  MutexLock lock(&mutex_);
  for (const auto& [name, peer] : peers_) {
    if (peer.heard < since || !peer.holds[*number]) continue;
    (peer.draining ? draining : holders).push_back(name);
  }
  return holders.empty() ? draining : holders;
}

std::vector<PartitionRef> Holdings::HeldByNone(
    absl::Span<const PartitionRef> refs, absl::Time since) const {
  std::vector<PartitionRef> held_by_none;
  MutexLock lock(&mutex_);
  std::vector<const Peer*> stay;
  for (const auto& [name, peer] : peers_) {
    if (peer.heard >= since && !peer.draining) stay.push_back(&peer);
  }
  for (const PartitionRef& ref : refs) {
    const std::optional<size_t> number = index_.Find(ref);
    if (!number.has_value()) continue;
    const bool held =
        std::any_of(stay.begin(), stay.end(),
                    [&](const Peer* peer) { return peer->holds[*number]; });
    if (!held) held_by_none.push_back(ref);
  }
  return held_by_none;
}

}  // namespace engram
