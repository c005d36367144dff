#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "core/rpc/channel.h"
#include "tests/unit/engram_client/compute/client_fixture.h"
#include "tests/unit/engram_client/compute/silent_worker.h"

namespace engram {
namespace {

using test::Eventually;
using test::FakeRowSource;
using test::SilentWorker;
using test::Soon;
using test::TestStep;
using test::TestWorker;

constexpr auto kWhenTold = FakeRowSource::Mode::kWhenTold;
constexpr absl::Duration kHedgeDelay = absl::Milliseconds(20);
// Far more than a step takes, however busy the machine is.
constexpr absl::Duration kLong = absl::Minutes(10);

// The first step of a client goes to the first address, its hedge to the next.
class HedgingTest : public test::ClientFixture {
 protected:
  // What the worker says of itself.
  v1::GetModelResponse ModelOf(const std::string& name) {
    v1::GetModelResponse model;
    grpc::ClientContext context;
    EXPECT_TRUE(v1::ComputeService::NewStub(MakeChannel(Address(name)))
                    ->GetModel(&context, {}, &model)
                    .ok());
    return model;
  }
  static bool Idle(TestWorker& worker) {
    return Eventually(
        [&] { return worker.fixture.engine->steps_in_flight() == 0; });
  }
  // Runs the step both ways, with the clients' deadline far away.
  static absl::Status Run(bool apply, TestStep& step, ComputeClient& client) {
    if (apply) return step.Apply(client, absl::Now() + kLong);
    auto begun = step.Begin(client, absl::Now() + kLong);
    if (!begun.ok()) return begun.status();
    for (const size_t layer : {0, 1}) {
      absl::Status status = (*begun)->Layer(step.Io(layer));
      if (!status.ok()) return status;
    }
    return (*begun)->Finish();
  }
};

class HedgingBothWaysTest : public HedgingTest,
                            public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(, HedgingBothWaysTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Apply" : "Forward";
                         });

TEST_P(HedgingBothWaysTest, ASecondWorkerAnswersForASilentOne) {
  const auto first = StartWorker("a", {.mode = kWhenTold});
  const auto second = StartWorker("b");
  const auto client = Connect({"a", "b"}, kHedgeDelay);
  TestStep step(second->fixture.block, {1, 2, 3});
  const absl::Status status = Run(GetParam(), step, *client);
  EXPECT_TRUE(status.ok()) << status;
  step.ExpectRight();
  EXPECT_TRUE(Idle(*first));  // was told to stop
  EXPECT_EQ(first->fixture.rows.cancelled(), 2);
  EXPECT_EQ(client->stats().steps, 1);
  EXPECT_EQ(client->stats().hedges, 1);
  EXPECT_EQ(client->stats().hedges_won, 1);
  EXPECT_EQ(client->stats().retries, 0);
}

TEST_P(HedgingBothWaysTest, TheFirstMayStillAnswerFirst) {
  const auto first = StartWorker("a", {.mode = kWhenTold});
  const auto second = StartWorker("b", {.mode = kWhenTold});
  const auto client = Connect({"a", "b"}, kHedgeDelay);
  TestStep step(first->fixture.block, {1, 2, 3});
  absl::Status status;
  std::thread caller([&] { status = Run(GetParam(), step, *client); });
  second->fixture.rows.AwaitFetches(2);
  for (const size_t fetch : {0, 1}) first->fixture.rows.Complete(fetch);
  caller.join();
  EXPECT_TRUE(status.ok()) << status;
  step.ExpectRight();
  EXPECT_TRUE(Idle(*second));
  EXPECT_EQ(client->stats().hedges_won, 0);
}

TEST_P(HedgingBothWaysTest, AHedgeThatFailsIsReplaced) {
  const auto first = StartWorker("a", {.mode = kWhenTold});
  const auto full = StartWorker(
      "b", {.engine = [](auto& options) { options.max_steps_in_flight = 0; }});
  const auto third = StartWorker("c");
  const auto client = Connect({"a", "b", "c"}, kHedgeDelay);
  TestStep step(third->fixture.block, {1, 2, 3});
  const absl::Status status = Run(GetParam(), step, *client);
  EXPECT_TRUE(status.ok()) << status;
  step.ExpectRight();
  EXPECT_EQ(client->stats().hedges, 2);
  EXPECT_EQ(client->stats().hedges_won, 1);
}

TEST_P(HedgingBothWaysTest, AWorkerThatRefusedAHedgeMayTakeALaterOne) {
  const auto silent = StartWorker("a", {.mode = kWhenTold});
  const auto full = StartWorker(
      "b", {.mode = kWhenTold,
            .engine = [](auto& options) { options.max_steps_in_flight = 1; }});
  const auto other = Connect({"b"});
  TestStep first(full->fixture.block, {7});
  auto in_its_way = first.Begin(*other, absl::Now() + kLong);
  ASSERT_TRUE(in_its_way.ok()) << in_its_way.status();
  full->fixture.rows.AwaitFetches(2);
  const auto client = Connect({"a", "b"}, kHedgeDelay);
  TestStep step(full->fixture.block, {1, 2, 3});
  absl::Status status;
  std::thread caller([&] { status = Run(GetParam(), step, *client); });
  EXPECT_TRUE(Eventually([&] { return client->stats().hedges >= 2; }));
  in_its_way->reset();
  full->fixture.rows.AwaitFetches(4);
  for (const size_t fetch : {2, 3}) full->fixture.rows.Complete(fetch);
  caller.join();
  EXPECT_TRUE(status.ok()) << status;
  step.ExpectRight();
}

TEST_P(HedgingBothWaysTest, AWorkerThatFailsAllHedgesGetsFew) {
  const auto silent = StartWorker("a", {.mode = kWhenTold});
  const auto broken = StartWorker("b");
  broken->fixture.block.OnForward(
      [](size_t) { return absl::InternalError("broken"); });
  const auto client = Connect({"a", "b"}, kHedgeDelay);
  TestStep step(silent->fixture.block, {1, 2, 3});
  absl::Status status;
  const absl::Time began = absl::Now();
  std::thread caller([&] { status = Run(GetParam(), step, *client); });
  EXPECT_TRUE(Eventually([&] { return client->stats().hedges >= 3; }));
  // Waits between them are doubled.
  EXPECT_GE(absl::Now() - began, 10 * kHedgeDelay);
  for (const size_t fetch : {0, 1}) silent->fixture.rows.Complete(fetch);
  caller.join();
  EXPECT_TRUE(status.ok()) << status;
  step.ExpectRight();
}

TEST_P(HedgingBothWaysTest, TheHedgeGoesOnWhenTheFirstFails) {
  auto first = StartWorker("a", {.mode = kWhenTold});
  const auto second = StartWorker("b", {.mode = kWhenTold});
  const auto client = Connect({"a", "b"}, kHedgeDelay);
  TestStep step(second->fixture.block, {1, 2, 3});
  absl::Status status;
  std::thread caller([&] { status = Run(GetParam(), step, *client); });
  second->fixture.rows.AwaitFetches(2);
  first = nullptr;
  for (const size_t fetch : {0, 1}) second->fixture.rows.Complete(fetch);
  caller.join();
  EXPECT_TRUE(status.ok()) << status;
  step.ExpectRight();
  EXPECT_EQ(second->fixture.rows.started(), 2);
  EXPECT_EQ(client->stats().retries, 0);
}

TEST_P(HedgingBothWaysTest, ASilentWorkerIsLeft) {
  const auto second = StartWorker("b");
  SilentWorker silent(Address("a"), ModelOf("b"));
  const auto client = Connect({"a", "b"}, kHedgeDelay);
  silent.StopTelling();
  for (uint32_t i = 0; i < 20; ++i) {
    TestStep step(second->fixture.block, {i});
    const absl::Status status = Run(GetParam(), step, *client);
    ASSERT_TRUE(status.ok()) << status;
    step.ExpectRight();
  }
  EXPECT_EQ(client->stats().ejections, 1);
  EXPECT_EQ(client->stats().hedges_won, 3);
}

TEST_P(HedgingBothWaysTest, ADeadlineWithoutAWordIsEnoughToBeLeft) {
  const auto second = StartWorker("b");
  SilentWorker silent(Address("a"), ModelOf("b"));
  // Of three silent ones the hedge is too: no answer at all.
  SilentWorker also_silent(Address("c"), ModelOf("b"));
  const auto client = Connect({"a", "c", "b"}, kHedgeDelay);
  silent.StopTelling();
  also_silent.StopTelling();
  TestStep step(second->fixture.block, {1});
  const absl::Time deadline = absl::Now() + absl::Milliseconds(200);
  absl::Status status;
  if (GetParam()) {
    status = step.Apply(*client, deadline);
  } else {
    auto lost = step.Begin(*client, deadline);
    ASSERT_TRUE(lost.ok());
    status = (*lost)->Layer(step.Io(0));
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(client->stats().ejections, 1);
}

TEST_F(HedgingTest, OnlyLayersWithoutAResultBeginAgain) {
  const auto first = StartWorker("a", {.mode = kWhenTold});
  const auto second = StartWorker("b");
  const auto client = Connect({"a", "b"}, absl::Seconds(1));
  TestStep step(second->fixture.block, {1, 2, 3});
  auto begun = step.Begin(*client, absl::Now() + kLong);
  ASSERT_TRUE(begun.ok());
  first->fixture.rows.AwaitFetches(2);
  first->fixture.rows.Complete(0);
  const size_t done = first->fixture.rows.layer(0) == step.Io(0).layer ? 0 : 1;
  ASSERT_TRUE((*begun)->Layer(step.Io(done)).ok());
  const absl::Status status = (*begun)->Layer(step.Io(1 - done));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE((*begun)->Finish().ok());
  step.ExpectRight();
  EXPECT_EQ(second->fixture.rows.started(), 1);
}

TEST_F(HedgingTest, AStepThatHasAllResultsNeedsNoLastWord) {
  v1::GetModelResponse model;
  const test::FakeBlock block;
  {
    const auto worker = StartWorker("b");
    model = ModelOf("b");
  }
  const SilentWorker worker(Address("a"), model,
                            SilentWorker::Mode::kAnswerLayers);
  const auto client = Connect({"a"}, kHedgeDelay);
  TestStep step(block, {1});
  const absl::Status status = Run(/*apply=*/false, step, *client);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(step.outs[0], step.streams);
  EXPECT_EQ(step.outs[1], step.streams);
}

TEST_F(HedgingTest, WithoutASecondWorkerTheFirstIsWaitedFor) {
  const auto worker = StartWorker("a", {.mode = kWhenTold});
  const auto client = Connect({"a"}, absl::Milliseconds(1));
  TestStep step(worker->fixture.block, {1});
  absl::Status status;
  std::thread caller(
      [&] { status = step.Apply(*client, absl::Now() + kLong); });
  worker->fixture.rows.AwaitFetches(2);
  for (const size_t fetch : {0, 1}) worker->fixture.rows.Complete(fetch);
  caller.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(client->stats().hedges, 0);
  EXPECT_EQ(client->stats().refused_hedges, 0);
}

TEST_F(HedgingTest, HalfOfTheTimeIsTheMostThatAWorkerGets) {
  const auto first = StartWorker("a", {.mode = kWhenTold});
  const auto second = StartWorker("b");
  const auto client = Connect({"a", "b"}, kLong);
  TestStep step(second->fixture.block, {1});
  // Half of it is enough for one answer of a loaded machine.
  const absl::Status status =
      step.Apply(*client, absl::Now() + absl::Seconds(4));
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace engram
