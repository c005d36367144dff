#include "table_server/rebalance/peer_exchange.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace engram {

PeerExchange::PeerExchange(PeerCalls& calls, Options options,
                           std::vector<LayerPartitionCount> layers,
                           std::function<void()> wake)
    : calls_(calls),
      options_(std::move(options)),
      layers_(std::move(layers)),
      wake_(std::move(wake)) {}

std::vector<Member> PeerExchange::Due(absl::Span<const Member> peers, Pace pace,
                                      absl::Time now) {
  const absl::Duration interval =
      pace == Pace::kBusy ? options_.busy_interval : options_.interval;
  std::vector<Member> due;
  MutexLock lock(&mutex_);
  Forget(peers);
  for (const Member& peer : peers) {
    const Peer& state = peers_[peer.name];
    if (!state.in_flight && now >= state.sent + interval) due.push_back(peer);
  }
  return due;
}

void PeerExchange::SendTo(absl::Span<const Member> peers, News news,
                          absl::Time now) {
  news.request.set_version(options_.version);
  news.request.set_server_name(options_.server_name);
  news.request.set_instance_id(options_.instance_id);
  for (const Member& peer : peers) {
    {
      MutexLock lock(&mutex_);
      peers_[peer.name] = {now, true};
    }
    v1::ExchangeRequest request = news.request;
    uint64_t epoch = 0;
    for (const HandOver::Ask& ask : news.asks) {
      if (ask.peer != peer.name) continue;
      epoch = ask.epoch;
      *request.mutable_to_free() = ToLayerPartitions(ask.partitions, layers_);
    }
    calls_.Exchange(
        peer.address, request, absl::Now() + options_.timeout,
        [this, name = peer.name, now,
         epoch](absl::StatusOr<v1::ExchangeResponse> response) {
          {
            MutexLock lock(&mutex_);
            peers_[name].in_flight = false;
            answers_.push_back({name, now, epoch, std::move(response)});
          }
          wake_();
        });
  }
}

void PeerExchange::Forget(absl::Span<const Member> peers) {
  absl::erase_if(peers_, [&](const auto& entry) {
    return !entry.second.in_flight &&
           !std::binary_search(peers.begin(), peers.end(),
                               Member{.name = entry.first, .address = ""},
                               [](const Member& a, const Member& b) {
                                 return a.name < b.name;
                               });
  });
}

std::vector<PeerExchange::Answer> PeerExchange::TakeAnswers() {
  MutexLock lock(&mutex_);
  return std::exchange(answers_, {});
}

}  // namespace engram
