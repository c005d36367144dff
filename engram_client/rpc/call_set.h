#ifndef ENGRAM_ENGRAM_CLIENT_RPC_CALL_SET_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_CALL_SET_H_

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "core/base/mutex.h"
#include "engram_client/rpc/table_transport.h"

namespace engram {

// The calls of a transport that have not ended. The set owns them, others have
// handles: when CancelAllAndWait returns, no call exists any more, however
// many handles do, and what calls use (channel, queue) may end.
//
// Thread safety: all methods may be called concurrently.
class CallSet {
 public:
  // Returns a handle that cancels `call` for as long as it is in the set.
  std::shared_ptr<TransportCall> Add(std::shared_ptr<TransportCall> call);

  // The last thing that a call does; it may be gone afterwards.
  void Remove(TransportCall* call);

  void CancelAllAndWait();

 private:
  struct State {
    // A call is used, or destroyed, outside the lock.
    void Enter() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { ++users; }
    void Leave();

    Mutex mutex;
    CondVar changed;
    uint64_t users ABSL_GUARDED_BY(mutex) = 0;
    std::unordered_map<TransportCall*, std::shared_ptr<TransportCall>> calls
        ABSL_GUARDED_BY(mutex);
  };
  class Handle;

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_CALL_SET_H_
