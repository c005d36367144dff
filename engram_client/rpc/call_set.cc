#include "engram_client/rpc/call_set.h"

#include <utility>
#include <vector>

namespace engram {

class CallSet::Handle final : public TransportCall {
 public:
  Handle(std::shared_ptr<State> state, std::weak_ptr<TransportCall> call)
      : state_(std::move(state)), call_(std::move(call)) {}

  void Cancel() override {
    std::shared_ptr<TransportCall> call;
    {
      MutexLock lock(&state_->mutex);
      call = call_.lock();
      if (call == nullptr) return;
      state_->Enter();
    }
    call->Cancel();
    call.reset();
    state_->Leave();
  }

 private:
  const std::shared_ptr<State> state_;
  const std::weak_ptr<TransportCall> call_;
};

void CallSet::State::Leave() {
  MutexLock lock(&mutex);
  --users;
  changed.NotifyAll();
}

std::shared_ptr<TransportCall> CallSet::Add(
    std::shared_ptr<TransportCall> call) {
  auto handle = std::make_shared<Handle>(state_, call);
  MutexLock lock(&state_->mutex);
  TransportCall* const key = call.get();
  state_->calls.emplace(key, std::move(call));
  return handle;
}

void CallSet::Remove(TransportCall* call) {
  const std::shared_ptr<State> state = state_;  // this may end at Leave
  std::shared_ptr<TransportCall> removed;
  {
    MutexLock lock(&state->mutex);
    const auto found = state->calls.find(call);
    if (found == state->calls.end()) return;
    removed = std::move(found->second);
    state->calls.erase(found);
    state->Enter();
  }
  removed.reset();
  state->Leave();
}

void CallSet::CancelAllAndWait() {
  std::vector<std::shared_ptr<TransportCall>> calls;
  {
    MutexLock lock(&state_->mutex);
    for (const auto& [key, call] : state_->calls) calls.push_back(call);
  }
  for (const auto& call : calls) call->Cancel();
  calls.clear();
  MutexLock lock(&state_->mutex);
  while (!state_->calls.empty() || state_->users > 0) {
    state_->changed.Wait(&state_->mutex);
  }
}

}  // namespace engram
