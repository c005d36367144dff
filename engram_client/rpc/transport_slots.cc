#include "engram_client/rpc/transport_slots.h"

#include "core/base/check.h"

namespace engram {

void TransportSlots::Open(ServerIndex server, uint64_t generation,
                          TableTransport* transport) {
  Slot& slot = slots_[server];
  MutexLock lock(&slot.mutex);
  ENGRAM_CHECK(slot.transport == nullptr && slot.users == 0);
  slot.transport = transport;
  slot.generation = generation;
}

TransportSlots::Use TransportSlots::Get(ServerIndex server,
                                        uint64_t generation) {
  Slot& slot = slots_[server];
  MutexLock lock(&slot.mutex);
  if (slot.transport == nullptr || slot.generation != generation) {
    return {nullptr, nullptr};
  }
  ++slot.users;
  return {&slot, slot.transport};
}

void TransportSlots::Leave(Slot& slot) {
  MutexLock lock(&slot.mutex);
  if (--slot.users == 0 && slot.transport == nullptr) slot.unused.NotifyAll();
}

void TransportSlots::Close(ServerIndex server) {
  Slot& slot = slots_[server];
  MutexLock lock(&slot.mutex);
  slot.transport = nullptr;
  while (slot.users > 0) slot.unused.Wait(&slot.mutex);
}

}  // namespace engram
