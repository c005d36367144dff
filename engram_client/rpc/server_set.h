#ifndef ENGRAM_ENGRAM_CLIENT_RPC_SERVER_SET_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_SERVER_SET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "engram_client/routing/routing_table.h"
#include "engram_client/rpc/call_monitor.h"
#include "engram_client/rpc/server_connection.h"
#include "engram_client/rpc/table_identity.h"
#include "engram_client/rpc/table_transport.h"
#include "engram_client/rpc/timer_queue.h"
#include "engram_client/rpc/transport_slots.h"
#include "engram_client/table_client.h"

namespace engram {

// The servers of a client: each has a slot, a transport and a connection.
//
// A server that is not named any more stays for as long as it is connected,
// holds partitions and has not begun anew at another address: it may be about
// to leave and answers until then, or the list that lacks it is not whole.
// Named again, it is what it was. One that is gone loses its slot to the next
// that comes, which begins with a new generation: nothing that was known of the
// one before is held against it.
//
// Thread safety: one thread at a time updates and stops; the rest may be called
// concurrently, at any time.
class ServerSet {
 public:
  // All must outlive the set.
  struct Environment {
    TransportFactory make_transport;
    TransportSlots* transports = nullptr;
    RoutingTable* routing = nullptr;
    TableIdentity* identity = nullptr;
    TimerQueue* timers = nullptr;
    CallMonitor* monitor = nullptr;
    // After each answer, good or bad, to what a server is.
    std::function<void()> on_answer;
  };

  ServerSet(size_t max_servers, Environment environment);
  // The calls of all have ended when it returns. Not on a thread of a
  // transport.
  ~ServerSet();
  ServerSet(const ServerSet&) = delete;
  ServerSet& operator=(const ServerSet&) = delete;

  // These are named from now on. Those beyond `max_servers` get no slot before
  // others are gone. Not on a thread of a transport: the calls to those that
  // are removed end first. REQUIRES: no address stands twice.
  void Update(absl::Span<const std::string> addresses);
  // Removes those that are not named and have gone meanwhile; likewise.
  void RemoveGone();
  // No more attempts to connect.
  void Stop();

  // By slot.
  std::vector<TableClient::ServerState> servers() const;
  // There are servers, and each has said what it is or that it fails.
  bool all_answered() const;

 private:
  using ConnectionPtr = std::shared_ptr<ServerConnection>;

  struct Server {
    ServerIndex slot = kNoServer;
    std::string address;
    bool named = true;
    std::unique_ptr<TableTransport> transport;
    ConnectionPtr connection;
  };

  // Says of each whether it is named. Returns the addresses that are new.
  std::vector<std::string> Mark(absl::Span<const std::string> named);
  void Start(absl::Span<const std::string> addresses);
  ServerIndex FreeSlot() const;  // kNoServer: none
  std::unique_ptr<Server> MakeServer(ServerIndex slot,
                                     const std::string& address);
  bool IsGone(const Server& server) const;
  void Remove(Server& server);
  std::vector<ConnectionPtr> Connections() const;

  const size_t max_servers_;
  const Environment environment_;
  // Used by the thread that updates. By slot; null: free.
  std::vector<std::unique_ptr<Server>> servers_;
  uint64_t last_generation_ = 0;
  size_t refused_ = 0;  // by the last update

  mutable Mutex mutex_;
  // By slot, for the others.
  std::vector<ConnectionPtr> connections_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_SERVER_SET_H_
