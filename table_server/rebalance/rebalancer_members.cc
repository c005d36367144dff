// What the rebalancer learns of members and peers, and tells them.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "table_server/rebalance/departure_list.h"
#include "table_server/rebalance/rebalancer.h"

namespace engram {
namespace {

// A view that did not fit is looked at again: memory may have come free.
constexpr absl::Duration kTryViewAgain = absl::Seconds(5);
constexpr absl::Duration kTellRefusalAgain = absl::Minutes(1);

}  // namespace

void Rebalancer::TakeWhatWasTold(absl::Time now) {
  std::optional<MemberWatcher::Observation> observation;
  bool leave = answers_.leave_asked();
  {
    MutexLock lock(&mutex_);
    observation.swap(observation_);
    leave = leave || leave_;
  }
  if (observation.has_value()) tracker_.Observe(*observation, now);
  known_.Retain(tracker_.Peers());
  for (const PeerExchange::Answer& answer : exchange_->TakeAnswers()) {
    TakeAnswer(answer, now);
  }
  tracker_.MergeDepartures(answers_.TakeDepartures());
  if (answers_.peer_has_view()) tracker_.ClusterIsFormed();
  if (leave && !leaving_) {
    leaving_ = true;
    spdlog::info("leaving the cluster for good: others take over");
    tracker_.Leave();
  }
}

void Rebalancer::TakeAnswer(const PeerExchange::Answer& answer,
                            absl::Time now) {
  if (!answer.response.ok()) {  // its silence counts
    if (known_.Failed(answer.peer)) {
      spdlog::warn("server {} does not answer: {}", answer.peer,
                   answer.response.status().ToString());
    }
    return;
  }
  const v1::ExchangeResponse& response = *answer.response;
  // Another server, or one of another table, may have its address now.
  if (response.server_name() != answer.peer ||
      response.version() != parts_.manifest->version()) {
    return;
  }
  auto held = FromLayerPartitions(response.held(), layers_);
  const auto acknowledged =
      FromLayerPartitions(response.acknowledged(), layers_);
  if (!held.ok() || !acknowledged.ok()) {
    if (known_.Failed(answer.peer)) {
      spdlog::warn("server {} tells what the table lacks: {}", answer.peer,
                   (held.ok() ? acknowledged : held).status().ToString());
    }
    return;
  }
  tracker_.HeardFrom(answer.peer, response.instance_id(),
                     !response.view_digest().empty(), now);
  tracker_.MergeDepartures(FromDepartureList(response.departures()));
  switch (known_.Heard(answer.peer, response, *std::move(held), answer.asked)) {
    case KnownPeers::News::kIgnored:
      return;
    case KnownPeers::News::kAsBefore:
      break;
    case KnownPeers::News::kRestarted:
      hand_over_.PeerRestarted(answer.peer);
  }
  hand_over_.Acknowledged(answer.peer, answer.epoch, *acknowledged, now);
}

void Rebalancer::FollowMembers(absl::Time now) {
  const bool changed = tracker_.Update(now);
  CheckOwnDeparture();
  const bool again =
      !view_refusal_.empty() && now >= view_tried_ + kTryViewAgain;
  if (!changed && !again) return;
  view_tried_ = now;
  const absl::Status status = AdoptView(now);
  if (!status.ok()) return RefuseView(status, changed, now);
  view_refusal_.clear();
}

// Ids of instances grow with the time of their start.
void Rebalancer::CheckOwnDeparture() {
  if (leaving_ || !own_departure_.empty()) return;
  const std::string& self = options_.membership.self;
  for (const MemberDeparture& departure : tracker_.departures()) {
    if (departure.name != self) continue;
    own_departure_ = absl::StrCat(
        "server ", self, " left for good as instance ", departure.instance_id,
        ", which is later than this one, ",
        options_.membership.self_instance_id,
        ": the clock was set back; start the server again when it is right");
    spdlog::error("{}", own_departure_);
  }
}

absl::Status Rebalancer::AdoptView(absl::Time now) {
  const std::vector<Member>& members = tracker_.view();
  if (members.empty()) {
    return absl::FailedPreconditionError(
        "no other member is left to take over");
  }
  ENGRAM_ASSIGN_OR_RETURN(
      const auto view,
      ClusterView::Create(*parts_.manifest, {.self = options_.membership.self,
                                             .members = members,
                                             .replicas = options_.replicas,
                                             .layers = options_.layers}));
  ENGRAM_RETURN_IF_ERROR(store_->CheckFits(view->owned()));
  // Before a thread can take a load of it.
  pool_->SetPaced(known_.HeldByNone(MissingOf(*view), HeardSince(now)).empty());
  hand_over_.SetView(view);
  first_view_ = std::min(first_view_, now);
  first_load_bytes_ = 0;
  for (const PartitionRef& ref : view->owned()) {
    first_load_bytes_ += store_->BytesToLoad(ref);
  }
  parts_.metrics->ViewChanged();
  const HandOver::Counts counts = hand_over_.counts();
  spdlog::info(
      "members: {}; {} partitions are this server's, {} to load, {} to give up",
      NamesOf(members), counts.owned, counts.to_load, counts.to_free);
  pool_->Wake();
  return absl::OkStatus();
}

void Rebalancer::RefuseView(const absl::Status& status, bool changed,
                            absl::Time now) {
  view_refusal_ = std::string(status.message());
  // The sums in it are others each time.
  if (!changed && now < refusal_told_ + kTellRefusalAgain) return;
  refusal_told_ = now;
  const std::vector<Member>& members = tracker_.view();
  spdlog::error("members {}: {}", members.empty() ? "none" : NamesOf(members),
                view_refusal_);
}

void Rebalancer::SendExchanges(absl::Time now) {
  const std::vector<Member> peers = tracker_.Peers();
  const HandOver::Counts counts = hand_over_.counts();
  const bool busy = exiting_.load() || counts.to_load > 0 ||
                    counts.to_free > 0 || counts.to_confirm > 0;
  const std::vector<Member> due = exchange_->Due(
      peers, busy ? PeerExchange::Pace::kBusy : PeerExchange::Pace::kUsual,
      now);
  if (due.empty()) return;
  std::vector<std::string> addresses;
  for (const Member& peer : peers) addresses.push_back(peer.address);
  peers_->Retain(addresses);
  const auto view = hand_over_.view();
  const std::vector<HandOver::Ask> asks = hand_over_.Asks();
  PeerExchange::News news{.asks = asks};
  if (view != nullptr) news.request.set_view_digest(view->digest());
  *news.request.mutable_departures() = ToDepartureList(tracker_.departures());
  exchange_->SendTo(due, std::move(news), now);
}

}  // namespace engram
