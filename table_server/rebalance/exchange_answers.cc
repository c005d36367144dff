#include "table_server/rebalance/exchange_answers.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "table_server/rebalance/departure_list.h"

namespace engram {
namespace {

// Of departures that wait to be taken, and what one request adds. More are told
// again by the next exchange.
constexpr size_t kMaxWaiting = Departures::kMax;

}  // namespace

ExchangeAnswers::ExchangeAnswers(const HandOver& hand_over,
                                 std::vector<LayerPartitionCount> layers,
                                 std::function<void()> wake)
    : hand_over_(hand_over),
      layers_(std::move(layers)),
      wake_(std::move(wake)),
      state_(std::make_shared<v1::ExchangeResponse>()) {}

absl::Status ExchangeAnswers::Exchange(const v1::ExchangeRequest& request,
                                       absl::Span<const PartitionRef> to_free,
                                       v1::ExchangeResponse& response) {
  std::shared_ptr<const v1::ExchangeResponse> state;
  bool exiting = false;
  {
    MutexLock lock(&mutex_);
    state = state_;
    exiting = exiting_;
    peer_has_view_ = peer_has_view_ || !request.view_digest().empty();
  }
  response.MergeFrom(*state);
  if (exiting) {
    response.set_draining(true);
  } else if (!to_free.empty()) {
    *response.mutable_acknowledged() = ToLayerPartitions(
        hand_over_.Acknowledge(request.view_digest(), to_free), layers_);
  }
  TakeNews(FromDepartureList(request.departures()), *state);
  return absl::OkStatus();
}

void ExchangeAnswers::TakeNews(std::vector<MemberDeparture> told,
                               const v1::ExchangeResponse& state) {
  absl::flat_hash_map<std::string, uint64_t> known;
  for (const v1::Departure& departure : state.departures()) {
    known[departure.server_name()] = departure.instance_id();
  }
  std::erase_if(told, [&](const MemberDeparture& departure) {
    const auto found = known.find(departure.name);
    return found != known.end() && found->second >= departure.instance_id;
  });
  if (told.empty()) return;
  {
    MutexLock lock(&mutex_);
    if (departures_.size() >= kMaxWaiting) return;
    departures_.insert(departures_.end(), told.begin(), told.end());
  }
  wake_();
}

absl::Status ExchangeAnswers::Leave(const v1::LeaveRequest& /*request*/) {
  {
    MutexLock lock(&mutex_);
    leave_asked_ = true;
  }
  wake_();
  return absl::OkStatus();
}

void ExchangeAnswers::Publish(v1::ExchangeResponse state) {
  auto next = std::make_shared<const v1::ExchangeResponse>(std::move(state));
  MutexLock lock(&mutex_);
  state_.swap(next);
}

void ExchangeAnswers::AnnounceExit() {
  MutexLock lock(&mutex_);
  exiting_ = true;
}

std::vector<MemberDeparture> ExchangeAnswers::TakeDepartures() {
  MutexLock lock(&mutex_);
  return std::exchange(departures_, {});
}

bool ExchangeAnswers::leave_asked() const {
  MutexLock lock(&mutex_);
  return leave_asked_;
}

bool ExchangeAnswers::peer_has_view() const {
  MutexLock lock(&mutex_);
  return peer_has_view_;
}

}  // namespace engram
