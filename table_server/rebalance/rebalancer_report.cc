// What the rebalancer says of itself: to peers and tools, in metrics and logs.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "table_server/rebalance/departure_list.h"
#include "table_server/rebalance/rebalancer.h"

namespace engram {

void Rebalancer::PublishState(absl::Time now) {
  const HandOver::Counts counts = hand_over_.counts();
  const auto view = hand_over_.view();
  v1::ExchangeResponse state;
  RebalanceMetrics::State metrics;
  state.set_leaving(leaving_);
  state.set_replicas(options_.replicas);
  if (view != nullptr) {
    state.set_view_digest(view->digest());
    metrics.views_that_differ =
        known_.ViewsOtherThan(view->digest(), HeardSince(now)).size();
  }
  for (const Member& member : FollowedMembers()) {
    v1::ExchangeResponse::ViewMember* out = state.add_members();
    out->set_name(member.name);
    out->set_address(member.address);
    out->set_capacity(member.capacity);
    out->set_heard(member.name == options_.membership.self ||
                   known_.IsHeard(member.name, HeardSince(now)));
    ++metrics.members;
    if (out->heard()) ++metrics.members_heard;
  }
  for (const Member& peer : tracker_.Peers()) {
    const bool heard = known_.IsHeard(peer.name, HeardSince(now));
    const bool known = std::any_of(
        state.members().begin(), state.members().end(),
        [&](const auto& member) { return member.name() == peer.name; });
    if (!heard || known) continue;
    v1::ExchangeResponse::ViewMember* out = state.add_others();
    out->set_name(peer.name);
    out->set_address(peer.address);
    out->set_capacity(peer.capacity);
    out->set_heard(true);
  }
  *state.mutable_departures() = ToDepartureList(tracker_.departures());
  metrics.counts = counts;
  metrics.loaded_bytes = pool_->loaded_bytes();
  metrics.leaving = leaving_;
  const std::string waiting_for = WaitingFor(counts, now);
  v1::ExchangeResponse::Moves& moves = *state.mutable_moves();
  moves.set_owned(counts.owned);
  moves.set_to_load(counts.to_load);
  moves.set_loading(counts.loading);
  moves.set_to_free(counts.to_free);
  moves.set_lingering(counts.lingering);
  moves.set_to_load_bytes(counts.to_load * PartitionBytes());
  moves.set_memory_bytes(store_->memory_bytes());
  moves.set_loaded_bytes(metrics.loaded_bytes);
  moves.set_failed_loads(counts.failed_loads);
  moves.set_waiting_for(waiting_for);
  parts_.metrics->Set(metrics);
  answers_.Publish(std::move(state));
  MutexLock lock(&mutex_);
  waiting_for_ = waiting_for;
}

// With the addresses that they have now.
std::vector<Member> Rebalancer::FollowedMembers() const {
  const auto view = hand_over_.view();
  if (view == nullptr) return tracker_.view();
  std::vector<Member> members = view->members();
  auto now = tracker_.view().begin();
  for (Member& member : members) {
    while (now != tracker_.view().end() && now->name < member.name) ++now;
    if (now == tracker_.view().end()) break;
    if (now->name == member.name) member.address = now->address;
  }
  return members;
}

std::string Rebalancer::WaitingFor(const HandOver::Counts& counts,
                                   absl::Time now) const {
  if (!own_departure_.empty()) return own_departure_;
  if (!view_refusal_.empty()) return view_refusal_;
  const std::string members = tracker_.waiting_for();
  if (!members.empty()) return members;
  const auto view = hand_over_.view();
  if (view == nullptr) return "";
  if (first_load_.has_value() && !IsMemberOf(*view)) {
    return absl::StrCat("server ", options_.membership.self,
                        " is none of the members: ", NamesOf(view->members()));
  }
  if (counts.to_load > 0 && !last_failure_.empty()) return last_failure_;
  return counts.to_free > 0 ? WaitingToFree(*view, now) : "";
}

std::string Rebalancer::WaitingToFree(const ClusterView& view,
                                      absl::Time now) const {
  std::vector<std::string> silent;
  for (const Member& member : view.members()) {
    if (member.name == options_.membership.self) continue;
    if (!known_.IsHeard(member.name, HeardSince(now))) {
      silent.push_back(member.name);
    }
  }
  std::vector<std::string> parts;
  if (!silent.empty()) {
    parts.push_back("no answer from " + absl::StrJoin(silent, ", "));
  }
  const std::vector<std::string> others =
      known_.ViewsOtherThan(view.digest(), HeardSince(now));
  if (!others.empty()) {
    parts.push_back("other members are seen by " + absl::StrJoin(others, ", "));
  }
  return absl::StrJoin(parts, "; ");
}

std::string Rebalancer::not_ready_reason() {
  MutexLock lock(&mutex_);
  if (ready_) return "";
  if (!fatal_.ok()) return std::string(fatal_.message());
  return UnreadyReason();
}

std::string Rebalancer::UnreadyReason() const {
  return waiting_for_.empty() ? "partitions are being loaded" : waiting_for_;
}

}  // namespace engram
