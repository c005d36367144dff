#include "table_server/peers/grpc_peer_calls.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/rpc/channel.h"
#include "table_server/peers/exchange_call.h"
#include "table_server/peers/fetch_call.h"

namespace engram {
namespace {

// How soon a fetch sees that it is to stop.
constexpr absl::Duration kStopPoll = absl::Milliseconds(50);

absl::Status NotRunning() {
  return absl::CancelledError("this server makes no calls to peers now");
}

// Gives `sink` what `call` receives, until either ends.
absl::Status Receive(FetchCall& call, const std::string& address,
                     const PeerCalls::Fetch& fetch, PeerCalls::FetchSink sink) {
  std::string rows;
  absl::Time moved = absl::Now();
  while (true) {
    if (fetch.stop != nullptr && fetch.stop->load()) {
      return absl::CancelledError("the fetch was stopped");
    }
    const absl::Duration still = absl::Now() - moved;
    if (still >= fetch.stall_timeout) {
      return absl::DeadlineExceededError(absl::StrCat(
          address, " sent no rows for ", absl::FormatDuration(still)));
    }
    const FetchCall::Event event =
        call.Next(rows, std::min(kStopPoll, fetch.stall_timeout - still));
    if (event == FetchCall::Event::kEnded) return call.status();
    if (event == FetchCall::Event::kNothing || rows.empty()) continue;
    absl::Status status =
        sink({reinterpret_cast<const std::byte*>(rows.data()), rows.size()});
    if (!status.ok()) return status;
    moved = absl::Now();
  }
}

v1::FetchPartitionRequest ToRequest(const PeerCalls::Fetch& fetch) {
  v1::FetchPartitionRequest request;
  request.set_version(fetch.version);
  request.set_layer_id(ToInt(fetch.ref.layer));
  request.set_partition(ToInt(fetch.ref.partition));
  request.set_offset_bytes(fetch.offset_bytes);
  return request;
}

}  // namespace

GrpcPeerCalls::Connection::Connection(const std::string& address)
    : channel(MakeChannel(address)), stub(v1::TableService::NewStub(channel)) {}

GrpcPeerCalls::GrpcPeerCalls() : calls_(std::make_shared<LiveCalls>()) {}

GrpcPeerCalls::~GrpcPeerCalls() { Stop(); }

void GrpcPeerCalls::Start(std::vector<QueueLoop*> loops) {
  ENGRAM_CHECK(!loops.empty());
  MutexLock lock(&mutex_);
  ENGRAM_CHECK(loops_.empty());
  loops_ = std::move(loops);
}

void GrpcPeerCalls::Stop() { calls_->CancelAllAndWait(); }

void GrpcPeerCalls::Exchange(const std::string& address,
                             const v1::ExchangeRequest& request,
                             absl::Time deadline, ExchangeDone done) {
  QueueLoop* const loop = NextLoop();
  if (loop == nullptr) return done(NotRunning());
  const std::shared_ptr<Peer> peer = PeerAt(address);
  const auto call =
      std::make_shared<ExchangeCall>(calls_, deadline, std::move(done));
  if (!calls_->Add(call)) return call->Refuse(NotRunning());
  // The caller has its own pace; the channel's backoff would come on top.
  grpc::experimental::ChannelResetConnectionBackoff(
      peer->exchanges.channel.get());
  call->Start(*peer->exchanges.stub, *loop, request);
}

absl::Status GrpcPeerCalls::FetchPartition(const std::string& address,
                                           const Fetch& fetch, FetchSink sink) {
  QueueLoop* const loop = NextLoop();
  if (loop == nullptr) return NotRunning();
  const std::shared_ptr<Peer> peer = PeerAt(address);
  const auto call = std::make_shared<FetchCall>(calls_, fetch.deadline);
  if (!calls_->Add(call)) return NotRunning();
  call->Start(*peer->fetches.stub, *loop, ToRequest(fetch));
  absl::Status status = Receive(*call, address, fetch, sink);
  call->Abandon();
  return status;
}

void GrpcPeerCalls::Retain(absl::Span<const std::string> addresses) {
  const absl::flat_hash_set<absl::string_view> kept(addresses.begin(),
                                                    addresses.end());
  std::vector<std::shared_ptr<Peer>> dropped;  // after the lock is gone
  MutexLock lock(&mutex_);
  for (auto at = peers_.begin(); at != peers_.end();) {
    const auto current = at++;
    if (kept.contains(current->first)) continue;
    dropped.push_back(std::move(current->second));
    peers_.erase(current);
  }
}

QueueLoop* GrpcPeerCalls::NextLoop() {
  MutexLock lock(&mutex_);
  return loops_.empty() ? nullptr : loops_[turn_++ % loops_.size()];
}

std::shared_ptr<GrpcPeerCalls::Peer> GrpcPeerCalls::PeerAt(
    const std::string& address) {
  MutexLock lock(&mutex_);
  std::shared_ptr<Peer>& peer = peers_[address];
  if (peer == nullptr) peer = std::make_shared<Peer>(address);
  return peer;
}

}  // namespace engram
