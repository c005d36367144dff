#include "engram_client/rpc/call_set.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace engram {
namespace {

// Ends itself in Cancel; counts those that exist.
class CountedCall final : public TransportCall {
 public:
  CountedCall(CallSet* calls, std::atomic<int>* alive)
      : calls_(calls), alive_(alive) {
    ++*alive_;
  }
  ~CountedCall() override { --*alive_; }
  void Cancel() override { calls_->Remove(this); }

 private:
  CallSet* const calls_;
  std::atomic<int>* const alive_;
};

TEST(CallSetTest, OwnsItsCallsWhateverHandlesThereAre) {
  std::atomic<int> alive{0};
  CallSet calls;
  auto owned = std::make_shared<CountedCall>(&calls, &alive);
  CountedCall* const call = owned.get();
  const auto handle = calls.Add(std::move(owned));
  EXPECT_EQ(alive, 1);
  calls.Remove(call);
  EXPECT_EQ(alive, 0);
  handle->Cancel();  // of a call that has ended
}

TEST(CallSetTest, AHandleCancelsItsCall) {
  std::atomic<int> alive{0};
  CallSet calls;
  const auto handle = calls.Add(std::make_shared<CountedCall>(&calls, &alive));
  handle->Cancel();
  EXPECT_EQ(alive, 0);
}

TEST(CallSetTest, HandlesMayOutliveTheSet) {
  std::atomic<int> alive{0};
  std::shared_ptr<TransportCall> handle;
  {
    CallSet calls;
    handle = calls.Add(std::make_shared<CountedCall>(&calls, &alive));
    calls.CancelAllAndWait();
    EXPECT_EQ(alive, 0);
  }
  handle->Cancel();
}

TEST(CallSetTest, NoCallExistsAfterTheWait) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> alive{0};
    CallSet calls;
    std::vector<std::shared_ptr<TransportCall>> handles;
    for (int i = 0; i < 20; ++i) {
      handles.push_back(
          calls.Add(std::make_shared<CountedCall>(&calls, &alive)));
    }
    std::thread canceller([&] {
      for (const auto& handle : handles) handle->Cancel();
    });
    calls.CancelAllAndWait();
    EXPECT_EQ(alive, 0);
    canceller.join();
  }
}

}  // namespace
}  // namespace engram
