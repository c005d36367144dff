#ifndef ENGRAM_TABLE_SERVER_PEERS_FAKE_PEER_CALLS_H_
#define ENGRAM_TABLE_SERVER_PEERS_FAKE_PEER_CALLS_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "table_server/peers/peer_calls.h"

namespace engram {

// Peers that are functions. Everything happens on the caller's thread; an
// address that is not set is UNAVAILABLE.
//
// Thread safety: all methods may be called concurrently.
class FakePeerCalls final : public PeerCalls {
 public:
  struct Peer {
    std::function<absl::StatusOr<v1::ExchangeResponse>(
        const v1::ExchangeRequest&)>
        exchange;
    std::function<absl::Status(const Fetch&, FetchSink)> fetch;
  };

  void Set(const std::string& address, Peer peer) {
    MutexLock lock(&mutex_);
    peers_[address] = std::move(peer);
  }
  void Remove(const std::string& address) {
    MutexLock lock(&mutex_);
    peers_.erase(address);
  }
  // Of the last Retain.
  std::vector<std::string> retained() const {
    MutexLock lock(&mutex_);
    return retained_;
  }

  void Exchange(const std::string& address, const v1::ExchangeRequest& request,
                absl::Time /*deadline*/, ExchangeDone done) override {
    const Peer peer = At(address);
    done(peer.exchange ? peer.exchange(request)
                       : absl::StatusOr<v1::ExchangeResponse>(Nobody(address)));
  }
  absl::Status FetchPartition(const std::string& address, const Fetch& fetch,
                              FetchSink sink) override {
    const Peer peer = At(address);
    return peer.fetch ? peer.fetch(fetch, sink) : Nobody(address);
  }
  void Retain(absl::Span<const std::string> addresses) override {
    MutexLock lock(&mutex_);
    retained_.assign(addresses.begin(), addresses.end());
  }

 private:
  static absl::Status Nobody(const std::string& address) {
    return absl::UnavailableError(absl::StrCat("nobody listens at ", address));
  }
  Peer At(const std::string& address) const {
    MutexLock lock(&mutex_);
    const auto found = peers_.find(address);
    return found == peers_.end() ? Peer{} : found->second;
  }

  mutable Mutex mutex_;
  std::map<std::string, Peer> peers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> retained_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_PEERS_FAKE_PEER_CALLS_H_
