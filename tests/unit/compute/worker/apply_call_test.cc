#include "compute/worker/apply_call.h"

#include <grpcpp/server_context.h>
#include <gtest/gtest.h>

#include <vector>

#include "compute/worker/service.h"
#include "core/base/mutex.h"
#include "core/base/notification.h"
#include "tests/unit/compute/worker/fakes.h"

namespace engram {
namespace {

using test::EngineFixture;
using test::MakeSequence;
using test::Soon;
using test::Streams;
using test::WantedStreams;

// Lets threads go on by twos, so that what comes after goes on at once.
class Meeting {
 public:
  void Arrive() {
    MutexLock lock(&mutex_);
    const int round = arrived_++ / 2;
    changed_.NotifyAll();
    while (arrived_ < 2 * (round + 1)) {
      ASSERT_TRUE(changed_.WaitUntil(&mutex_, Soon()));
    }
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int arrived_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Without a gRPC server, so that tsan sees all of it.
TEST(ApplyCallTest, LayersAreAnsweredAtOnce) {
  const std::vector<uint32_t> tokens = {1, 2, 3};
  for (int repeat = 0; repeat < 50; ++repeat) {
    EngineFixture f;
    Meeting meeting;
    f.block.OnForward([&](size_t) {
      meeting.Arrive();
      return absl::OkStatus();
    });
    const std::string streams = Streams(f.block, tokens.size());
    v1::ApplyRequest request;
    *request.add_sequences() = MakeSequence(tokens);
    request.set_dtype(v1::STREAM_DTYPE_BF16);
    request.set_return_kind(v1::RETURN_KIND_STREAMS);
    for (const uint32_t layer : f.block.config().layer_ids) {
      request.add_layers()->set_layer_id(layer);
      request.mutable_layers()->rbegin()->set_streams(streams);
    }
    v1::ApplyResponse response;
    grpc::CallbackServerContext context;
    grpc::ServerUnaryReactor* const call = ApplyCall::Start(
        f.engine.get(), kMaxApplyBytes, &context, &request, &response);
    ASSERT_TRUE(
        test::Eventually([&] { return f.engine->steps_in_flight() == 0; }));
    Notification over;  // whatever that thread still had to do for the step
    f.engine->RunOnHashThread({}, [&] { over.Notify(); });
    ASSERT_TRUE(over.WaitUntil(Soon()));
    static_cast<ApplyCall*>(call)->OnDone();
    f.engine = nullptr;
    ASSERT_EQ(response.layers_size(), 2);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(response.layers(i).layer_id(), request.layers(i).layer_id());
      EXPECT_EQ(
          response.layers(i).streams(),
          WantedStreams(f.block, static_cast<size_t>(i), tokens, {}, streams));
    }
  }
}

}  // namespace
}  // namespace engram
