#ifndef ENGRAM_ENGRAM_CLIENT_RPC_TRANSPORT_SLOTS_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_TRANSPORT_SLOTS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "engram_client/routing/routing_snapshot.h"
#include "engram_client/rpc/table_transport.h"

namespace engram {

// The transports of a client's servers. One of them may be about to be used
// when it has to go: whoever starts a call holds it for that time, and its
// owner waits for them before it destroys it.
//
// Thread safety: all methods may be called concurrently.
class TransportSlots {
  struct Slot;

 public:
  // Holds the transport: for as long as a call is being started, which never
  // waits for anything.
  class Use {
   public:
    Use(Use&& other) noexcept
        : slot_(std::exchange(other.slot_, nullptr)),
          transport_(other.transport_) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (slot_ != nullptr) Leave(*slot_);
    }

    explicit operator bool() const { return slot_ != nullptr; }
    TableTransport* operator->() const { return transport_; }

   private:
    friend class TransportSlots;
    Use(Slot* slot, TableTransport* transport)
        : slot_(slot), transport_(transport) {}

    Slot* slot_;
    TableTransport* const transport_;
  };

  explicit TransportSlots(size_t max_servers) : slots_(max_servers) {}

  // `transport` outlives Close. REQUIRES for these: server < max_servers; the
  // slot is closed, as all are at first.
  void Open(ServerIndex server, uint64_t generation, TableTransport* transport);
  // Nothing for a server that has gone.
  Use Get(ServerIndex server, uint64_t generation);
  // From now on nobody gets it, and when it returns, nobody has it.
  void Close(ServerIndex server);

 private:
  // Each on cache lines of its own: servers do not slow each other.
  struct alignas(64) Slot {
    Mutex mutex;
    CondVar unused;
    TableTransport* transport ABSL_GUARDED_BY(mutex) = nullptr;
    uint64_t generation ABSL_GUARDED_BY(mutex) = 0;
    uint32_t users ABSL_GUARDED_BY(mutex) = 0;
  };
  static void Leave(Slot& slot);

  std::vector<Slot> slots_;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_TRANSPORT_SLOTS_H_
