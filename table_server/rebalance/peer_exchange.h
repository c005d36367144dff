#ifndef ENGRAM_TABLE_SERVER_REBALANCE_PEER_EXCHANGE_H_
#define ENGRAM_TABLE_SERVER_REBALANCE_PEER_EXCHANGE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/membership/member.h"
#include "core/wire/layer_partitions.h"
#include "engram/v1/table.pb.h"
#include "table_server/peers/peer_calls.h"
#include "table_server/rebalance/hand_over.h"

namespace engram {

// Asks every peer what it knows, one call to each at a time, and collects the
// answers.
//
// Thread safety: all methods may be called concurrently.
class PeerExchange {
 public:
  struct Options {
    std::string server_name;
    uint64_t instance_id = 0;
    std::string version;
    absl::Duration interval = absl::Seconds(1);
    absl::Duration busy_interval = absl::Milliseconds(200);
    absl::Duration timeout = absl::Seconds(1);  // of one call
  };
  struct Answer {
    std::string peer;
    absl::Time asked;    // when the call began
    uint64_t epoch = 0;  // of the Ask; 0: nothing was asked of it
    absl::StatusOr<v1::ExchangeResponse> response;
  };

  // `calls` must have ended all its calls before this is destroyed. `wake`: an
  // answer came; called on a thread of `calls`.
  PeerExchange(PeerCalls& calls, Options options,
               std::vector<LayerPartitionCount> layers,
               std::function<void()> wake);

  // `peers`, by name, are all that there are: of others at most an answer still
  // comes. Returns those that it is time to ask.
  enum class Pace { kUsual, kBusy };  // busy: something moves
  std::vector<Member> Due(absl::Span<const Member> peers, Pace pace,
                          absl::Time now);
  // What is told to all, and what is asked of some.
  struct News {
    absl::Span<const HandOver::Ask> asks;
    v1::ExchangeRequest request;  // departures and view_digest
  };
  // `peers`: of Due.
  void SendTo(absl::Span<const Member> peers, News news, absl::Time now);

  std::vector<Answer> TakeAnswers();

 private:
  struct Peer {
    absl::Time sent = absl::InfinitePast();
    bool in_flight = false;
  };

  void Forget(absl::Span<const Member> peers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  PeerCalls& calls_;
  const Options options_;
  const std::vector<LayerPartitionCount> layers_;
  const std::function<void()> wake_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Peer> peers_ ABSL_GUARDED_BY(mutex_);
  std::vector<Answer> answers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_REBALANCE_PEER_EXCHANGE_H_
