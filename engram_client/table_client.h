#ifndef ENGRAM_ENGRAM_CLIENT_TABLE_CLIENT_H_
#define ENGRAM_ENGRAM_CLIENT_TABLE_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/config.h"
#include "core/model/row_format.h"

namespace prometheus {
class Registry;
}

namespace engram {

// What a cluster of table servers serves, as they all agree on it.
struct TableInfo {
  struct Layer {
    LayerId layer_id;
    uint64_t row_count = 0;
    uint32_t partition_count = 0;
  };
  std::string version;
  EngramConfig config;
  RowFormat row_format;
  uint64_t partition_rows = 0;
  std::vector<Layer> layers;
};

// Rows of one layer for one gather. `row_ids` and `out` are the caller's and
// must stay until the gather has ended. out.size() == row_ids.size() *
// row_format.row_bytes(); row i goes to slot i; ids may repeat.
struct LayerGather {
  LayerId layer;
  absl::Span<const RowId> row_ids;
  absl::Span<std::byte> out;
};

// What one gather did, for logs, metrics and the demo.
struct GatherStats {
  uint64_t rows = 0;
  uint64_t unique_rows = 0;
  uint64_t bytes_received = 0;  // packed rows over the wire
  uint64_t cached_rows = 0;     // of the unique ones, that the row cache had
  uint32_t calls = 0;           // with retries and hedges
  uint32_t servers = 0;
  uint32_t hedges = 0;
};

// A gather in flight. Destroying it cancels and waits until nothing writes to
// the caller's buffers any more (bounded: cancelled calls end at once).
// Thread safety: all methods may be called concurrently.
class GatherHandle {
 public:
  virtual ~GatherHandle() = default;

  // Waits for the end, at the latest the gather's deadline. OK: every row is
  // in place. Otherwise the buffers' contents are unspecified and the status
  // names table version, layer, partition and server.
  virtual absl::Status Wait() = 0;
  virtual bool done() const = 0;
  virtual void Cancel() = 0;
  // Final once Wait has returned.
  virtual GatherStats stats() const = 0;
};

// Fetches packed rows from table-server shards: drops duplicates, splits ids
// by partition, sends each part to a ready server that holds it, in parallel,
// and scatters the replies straight into the caller's buffers.
//
// Thread safety: all methods may be called concurrently.
class TableClient {
 public:
  struct Options {
    // Where the servers are: one of both is given.
    std::vector<std::string> addresses;  // host:port or unix:PATH, for good
    // Who they are now, looked at every second: as MemberSource, static:,
    // file:PATH or dns:NAME.
    std::string members;
    // Servers beyond it are not used; at most 4096.
    size_t max_servers = 256;
    std::string expected_version;        // empty: whatever the servers serve
    uint64_t max_rows_per_call = 32768;  // larger parts become several calls
    uint64_t max_gathers_in_flight = 1024;
    bool want_crc32c = false;  // servers sum each reply, the client checks it
    absl::Duration connect_timeout = absl::Seconds(10);
    // Threads that send requests and copy replies into place, for all servers
    // together; at most 64. 0: one for each four cores, at most 4.
    size_t poll_threads = 0;
    // How long one of them looks for events before it sleeps; at most 1 ms.
    // Saves the time to wake it, at one core each while it looks.
    absl::Duration spin;
    // A call that takes longer than nearly all of its size is sent to other
    // servers too, if they have all of its rows (a hedge). Their rows wait in
    // memory until the race is decided: this much at most. 0: no hedges.
    uint64_t max_hedge_buffer_bytes = 64 << 20;
    // When a call is hedged of a size of which few have been seen yet.
    absl::Duration first_hedge_delay = absl::Milliseconds(50);
    // Memory for rows that are asked for again and again (core/cache), all of
    // it. Taken bit by bit, as rows come. 0: no cache.
    uint64_t row_cache_bytes = 0;
    // Where the engram_client_* metrics go; null: they only make stats().
    std::shared_ptr<prometheus::Registry> metrics;
  };

  // Connects and waits until one server has told what the table is; servers
  // that are not up yet are waited for, within `connect_timeout`, and joined
  // whenever they come. So is, with `members`, the first word on who they are;
  // from then on the client follows: servers that are new are connected, those
  // that are neither named nor of use any more are let go.
  // INVALID_ARGUMENT: no addresses, or one twice; members that say nothing;
  // row_cache_bytes that hold not one row. RESOURCE_EXHAUSTED: nor are there
  // that many.
  // Servers of another version than expected_version are left out until they
  // come with it. FAILED_PRECONDITION: servers of different tables where none
  // is expected, or two of one name. WRONG_TABLE: all have answered, none with
  // expected_version (with `members`, whose servers may be replaced, only once
  // the time is over). UNAVAILABLE: nobody that can be used answered in time.
  static absl::StatusOr<std::unique_ptr<TableClient>> Create(Options options);
  // Cancels the gathers in flight and waits until they have told their end: not
  // in a `done`.
  virtual ~TableClient() = default;

  virtual const TableInfo& table() const = 0;

  // Starts a gather; never blocks. Rows of partitions that no server holds yet
  // are waited for until `deadline`. `done` (may be null) is called exactly
  // once with what Wait returns, on a thread of the client: it must not block.
  virtual std::unique_ptr<GatherHandle> Prefetch(
      std::vector<LayerGather> layers, absl::Time deadline,
      absl::AnyInvocable<void(const absl::Status&)> done) = 0;

  // Prefetch and Wait.
  absl::Status Gather(std::vector<LayerGather> layers, absl::Time deadline) {
    return Prefetch(std::move(layers), deadline, nullptr)->Wait();
  }

  // Waits until every partition of every layer has a ready server.
  // DEADLINE_EXCEEDED names how many have none and the first of them.
  virtual absl::Status WaitUntilComplete(absl::Time deadline) = 0;

  // Whether every partition has a server at this moment: one that is connected
  // and says that it holds it. UNAVAILABLE names how many have none, the first
  // of them and servers that are not connected. Never blocks; cheap while OK.
  virtual absl::Status CheckComplete() const = 0;

  // Each server that there is, as last seen: in the order of the addresses, or
  // with `members` in none.
  struct ServerState {
    std::string address;
    std::string name;  // empty: not reached yet
    bool connected = false;
    bool draining = false;
    uint64_t partitions_held = 0;
    std::string error;  // why it is not connected
  };
  virtual std::vector<ServerState> servers() const = 0;

  // What all calls came to since Create.
  struct Stats {
    uint64_t first_calls = 0;
    uint64_t retries = 0;       // calls with rows asked for before
    uint64_t held_retries = 0;  // failed calls that waited for the budget
    uint64_t hedges = 0;
    uint64_t hedges_won = 0;
    uint64_t refused_hedges = 0;  // no budget, or no memory
    uint64_t failed_calls = 0;    // the server's or the network's fault
    uint64_t corrupt_replies = 0;
    uint64_t ejections = 0;
    uint64_t servers_ejected = 0;  // now: left out, or coming back
  };
  virtual Stats stats() const = 0;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_TABLE_CLIENT_H_
