#include "engram_client/compute/worker_link.h"

#include <algorithm>
#include <utility>

#include "core/rpc/channel.h"

namespace engram {
namespace {

constexpr size_t kMaxStreamsOfASize = 16;
constexpr uint64_t kMaxTokensOfASmallStep = 64;

}  // namespace

WorkerLink::WorkerLink(std::string address)
    : address_(std::move(address)),
      stub_(v1::ComputeService::NewStub(MakeChannel(address_))) {}

WorkerLink::~WorkerLink() {
  for (const Streams* streams : {&small_, &large_, &ending_}) {
    for (const auto& stream : *streams) stream->Close();
  }
}

WorkerLink::Place WorkerLink::AddStep(const RunReplies& replies,
                                      uint64_t tokens, uint64_t max_steps) {
  MutexLock lock(&mutex_);
  Streams& streams = tokens > kMaxTokensOfASmallStep ? large_ : small_;
  SetBrokenAside(streams);
  Place place{.stream = Choose(streams, max_steps)};
  place.step_id = place.stream->AddStep(replies);
  return place;
}

const std::shared_ptr<ForwardStream>& WorkerLink::Choose(Streams& streams,
                                                         uint64_t max_steps) {
  const auto least = std::min_element(
      streams.begin(), streams.end(), [](const auto& a, const auto& b) {
        return a->steps_in_flight() < b->steps_in_flight();
      });
  if (least != streams.end() &&
      (max_steps == 0 || (*least)->steps_in_flight() < max_steps ||
       streams.size() >= kMaxStreamsOfASize)) {
    return *least;
  }
  return streams.emplace_back(ForwardStream::Open(*stub_, address_));
}

void WorkerLink::SetBrokenAside(Streams& streams) {
  const auto broken = std::stable_partition(
      streams.begin(), streams.end(),
      [](const auto& stream) { return !stream->broken(); });
  for (auto stream = broken; stream != streams.end(); ++stream) {
    (*stream)->Cancel();
    ending_.push_back(std::move(*stream));
  }
  streams.erase(broken, streams.end());
  ending_.erase(
      std::remove_if(ending_.begin(), ending_.end(),
                     [](const auto& stream) { return stream->ended(); }),
      ending_.end());
}

}  // namespace engram
