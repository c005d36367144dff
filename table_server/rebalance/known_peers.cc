#include "table_server/rebalance/known_peers.h"

#include <algorithm>
#include <utility>

namespace engram {

void KnownPeers::Retain(absl::Span<const Member> peers) {
  std::vector<std::string> gone;
  {
    MutexLock lock(&mutex_);
    auto known = peers_.begin();
    for (const Member& peer : peers) {
      while (known != peers_.end() && known->first < peer.name) {
        gone.push_back(known->first);
        known = peers_.erase(known);
      }
      if (known == peers_.end() || known->first != peer.name) {
        known = peers_.emplace_hint(known, peer.name, Peer{});
      }
      known->second.address = peer.address;
      ++known;
    }
    for (auto it = known; it != peers_.end(); ++it) gone.push_back(it->first);
    peers_.erase(known, peers_.end());
  }
  for (const std::string& name : gone) holdings_.Remove(name);
}

KnownPeers::News KnownPeers::Heard(const std::string& name,
                                   const v1::ExchangeResponse& response,
                                   std::vector<PartitionRef> held,
                                   absl::Time asked) {
  News news = News::kAsBefore;
  {
    MutexLock lock(&mutex_);
    const auto found = peers_.find(name);
    if (found == peers_.end()) return News::kIgnored;
    Peer& peer = found->second;
    if (response.instance_id() < peer.instance_id) return News::kIgnored;
    if (response.instance_id() > peer.instance_id && peer.instance_id != 0) {
      news = News::kRestarted;
    }
    peer.instance_id = response.instance_id();
    peer.view_digest = response.view_digest();
    peer.goes = response.leaving() || response.draining();
    peer.failing = false;
    peer.asked = asked;
  }
  holdings_.Set(name, {.ready = response.ready(),
                       .draining = response.draining(),
                       .view_digest = response.view_digest(),
                       .heard = asked,
                       .held = std::move(held)});
  return news;
}

bool KnownPeers::Failed(absl::string_view name) {
  MutexLock lock(&mutex_);
  const auto found = peers_.find(name);
  return found != peers_.end() && !std::exchange(found->second.failing, true);
}

KnownPeers::Outlook KnownPeers::OutlookOf(absl::string_view name,
                                          absl::Time since) const {
  MutexLock lock(&mutex_);
  const auto found = peers_.find(name);
  return found == peers_.end() ? Outlook::kSilent
                               : OutlookOf(found->second, since);
}

KnownPeers::Outlooks KnownPeers::CountOutlooks(absl::Time since) const {
  Outlooks count;
  MutexLock lock(&mutex_);
  for (const auto& [name, peer] : peers_) {
    switch (OutlookOf(peer, since)) {
      case Outlook::kStays:
        ++count.stay;
        break;
      case Outlook::kGoes:
        ++count.go;
        break;
      case Outlook::kSilent:
        ++count.silent;
        break;
    }
  }
  return count;
}

std::vector<std::string> KnownPeers::ViewsOtherThan(absl::string_view digest,
                                                    absl::Time since) const {
  std::vector<std::string> names;
  MutexLock lock(&mutex_);
  for (const auto& [name, peer] : peers_) {
    if (peer.asked < since || peer.view_digest == digest) continue;
    names.push_back(name);
  }
  return names;
}

std::vector<PartitionHolder> KnownPeers::HoldersOf(const PartitionRef& ref,
                                                   absl::Time since) const {
  const std::vector<std::string> names = holdings_.HoldersOf(ref, since);
  std::vector<PartitionHolder> holders;
  MutexLock lock(&mutex_);
  for (const std::string& name : names) {
    const auto found = peers_.find(name);
    if (found != peers_.end()) holders.push_back({name, found->second.address});
  }
  return holders;
}

}  // namespace engram
