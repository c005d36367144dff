#ifndef ENGRAM_TABLE_SERVER_PEERS_PEER_SOURCE_H_
#define ENGRAM_TABLE_SERVER_PEERS_PEER_SOURCE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "table_server/loading/partition_source.h"
#include "table_server/peers/peer_calls.h"

namespace engram {

// Another server that says that it holds a partition.
struct PartitionHolder {
  std::string name;
  std::string address;
};

// Partitions from other servers. Each Read asks the holders in an order of its
// own, so that many spread over all of them, goes on with the next where one
// fails, and waits for those that are busy.
class PeerSource final : public PartitionSource {
 public:
  struct Options {
    std::string version;  // of the table
    size_t row_bytes = 0;
    absl::Duration read_timeout = absl::Minutes(10);  // of a whole Read
    absl::Duration stall_timeout = absl::Seconds(10);
    // Holders that are all OVERLOADED are asked again for this long, in which
    // no byte came.
    absl::Duration busy_timeout = absl::Seconds(30);
    // Reads end with CANCELLED soon after this becomes true. May be null.
    const std::atomic<bool>* stop = nullptr;
    uint64_t seed = 0;  // of the order; servers have different ones
  };
  // Who holds a partition now, without this server. Thread-safe.
  using Holders =
      std::function<std::vector<PartitionHolder>(const PartitionRef&)>;

  // `calls` must outlive the source.
  PeerSource(PeerCalls& calls, Holders holders, Options options);

  std::string description() const override { return "peers"; }

  // NOT_FOUND: nobody holds it. DATA_LOSS: a peer sent too many or too few
  // bytes. UNAVAILABLE, with a peer and its error: no holder gave it.
  // CANCELLED: stopped.
  absl::Status Read(
      const PartitionRef& ref, absl::Span<std::byte> out,
      absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) override;

 private:
  class Copy;
  struct Round;

  // Asks each holder once, in an order that `turn` decides.
  Round AskAll(Copy& copy, uint64_t turn, absl::Time deadline);
  absl::Status AskOne(Copy& copy, const PartitionHolder& holder,
                      absl::Time deadline);
  std::vector<PartitionHolder> HoldersInOrder(const PartitionRef& ref,
                                              uint64_t turn) const;
  bool stopped() const {
    return options_.stop != nullptr && options_.stop->load();
  }
  void Pause(absl::Duration pause) const;

  const Options options_;
  PeerCalls& calls_;
  const Holders holders_;
  std::atomic<uint64_t> reads_{0};
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_PEERS_PEER_SOURCE_H_
