#include "engram_client/compute_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "core/wire/error_detail.h"
#include "tests/unit/compute/worker/test_worker.h"
#include "tests/unit/engram_client/compute/client_fixture.h"

namespace engram {
namespace {

using test::Eventually;
using test::FakeRowSource;
using test::Soon;
using test::TestStep;
using test::TestWorker;
using ::testing::HasSubstr;

constexpr auto kWhenTold = FakeRowSource::Mode::kWhenTold;

using ComputeClientTest = test::ClientFixture;

TEST_F(ComputeClientTest, TellsTheModel) {
  const auto worker = StartWorker("a");
  const auto client = Connect({"a"});
  EXPECT_EQ(client->model().version, "v1");
  EXPECT_EQ(client->model().config, worker->fixture.block.config());
  EXPECT_EQ(client->model().max_chunk_bytes, 1 << 20);
}

TEST_F(ComputeClientTest, ApplyAndForwardGiveTheSame) {
  const auto worker = StartWorker("a");
  const auto client = Connect({"a"});
  TestStep apply(worker->fixture.block, {1, 2, 3});
  const absl::Status applied = apply.Apply(*client);
  ASSERT_TRUE(applied.ok()) << applied;
  apply.ExpectRight();
  TestStep forward(worker->fixture.block, {1, 2, 3});
  const absl::Status forwarded = forward.Forward(*client);
  ASSERT_TRUE(forwarded.ok()) << forwarded;
  forward.ExpectRight();
}

TEST_F(ComputeClientTest, LayersGoInAnyOrder) {
  const auto worker = StartWorker("a");
  const auto client = Connect({"a"});
  TestStep apply(worker->fixture.block, {1, 2, 3});
  ASSERT_EQ(apply.Io(1).layer, LayerId{14});
  ASSERT_EQ(apply.Io(0).layer, LayerId{1});
  const absl::Status applied =
      client->Apply(apply.sequences, StepDtype::kBf16, StepReturn::kStreams,
                    {apply.Io(1), apply.Io(0)}, Soon());
  EXPECT_TRUE(applied.ok()) << applied;
  apply.ExpectRight();
  for (const size_t first : {0, 1}) {
    TestStep forward(worker->fixture.block, {1, 2, 3});
    auto step =
        client->Begin(forward.sequences, StepDtype::kBf16, StepReturn::kStreams,
                      {LayerId{14}, LayerId{1}}, {.deadline = Soon()});
    ASSERT_TRUE(step.ok()) << step.status();
    for (const size_t layer : {first, 1 - first}) {
      const absl::Status status = (*step)->Layer(forward.Io(layer));
      EXPECT_TRUE(status.ok()) << status;
    }
    EXPECT_TRUE((*step)->Finish().ok());
    forward.ExpectRight();
  }
}

TEST_F(ComputeClientTest, Contribution) {
  const auto worker = StartWorker("a");
  const auto client = Connect({"a"});
  TestStep step(worker->fixture.block, {1, 2, 3});
  const EngramConfig& config = client->model().config;
  std::vector<float> gate[2];
  std::vector<uint16_t> value[2];
  for (const size_t i : {0, 1}) {
    gate[i].assign(3 * config.hc_mult, -1);
    value[i].assign(3 * config.dim, 0xEEEE);
  }
  const auto io = [&](size_t i) {
    return StepLayerIo{.layer = step.Io(1).layer,
                       .streams = step.Io(1).streams,
                       .gate = absl::MakeSpan(gate[i]),
                       .value = absl::MakeSpan(value[i])};
  };
  ASSERT_TRUE(client
                  ->Apply(step.sequences, StepDtype::kBf16,
                          StepReturn::kContribution, {io(0)}, Soon())
                  .ok());
  auto begun =
      client->Begin(step.sequences, StepDtype::kBf16, StepReturn::kContribution,
                    {io(1).layer}, {.deadline = Soon()});
  ASSERT_TRUE(begun.ok());
  ASSERT_TRUE((*begun)->Layer(io(1)).ok());
  ASSERT_TRUE((*begun)->Finish().ok());
  EXPECT_EQ(gate[0], gate[1]);
  EXPECT_EQ(value[0], value[1]);
  EXPECT_GT(gate[0][0], 0);
}

TEST_F(ComputeClientTest, StreamsGoInChunksOfWholeTokens) {
  // One token a chunk, and more chunks than are sent at a time.
  const test::FakeBlock block;
  std::vector<uint32_t> tokens(100);
  for (uint32_t i = 0; i < tokens.size(); ++i) tokens[i] = i % 50;
  TestStep step(block, tokens);
  const uint64_t token_bytes = step.streams.size() / tokens.size();
  const auto worker = StartWorker("a", {.limits = [&](ForwardLimits& limits) {
                                    limits.max_chunk_bytes =
                                        2 * token_bytes - 1;
                                  }});
  const auto client = Connect({"a"});
  const absl::Status status = step.Forward(*client);
  ASSERT_TRUE(status.ok()) << status;
  step.ExpectRight();
  EXPECT_EQ(worker->fixture.block.forwards(), 200);
}

TEST_F(ComputeClientTest, EachWorkerHasItsOwnLimits) {
  const test::FakeBlock block;
  TestStep on_first(block, {1, 2, 3, 4});
  TestStep on_second(block, {5, 6, 7, 8});
  const uint64_t token_bytes = on_first.streams.size() / 4;
  const auto chunks_of = [&](uint64_t tokens) {
    return [=](ForwardLimits& limits) {
      limits.max_chunk_bytes = tokens * token_bytes;
    };
  };
  const auto first = StartWorker("a", {.limits = chunks_of(2)});
  const auto second = StartWorker(
      "b", {.engine = [](auto& options) { options.max_tokens_per_step = 5; },
            .limits = chunks_of(1)});
  const auto client = Connect({"a", "b"});
  EXPECT_EQ(client->model().max_chunk_bytes, token_bytes);
  EXPECT_EQ(client->model().max_tokens_per_step, 5);
  for (TestStep* const step : {&on_first, &on_second}) {
    const absl::Status status = step->Forward(*client);
    EXPECT_TRUE(status.ok()) << status;
    step->ExpectRight();
  }
  EXPECT_EQ(first->fixture.block.forwards(), 4);
  EXPECT_EQ(second->fixture.block.forwards(), 8);
}

TEST_F(ComputeClientTest, MoreStepsThanAStreamTakesGoOnAnother) {
  const auto worker = StartWorker("a", {.limits = [](ForwardLimits& limits) {
                                    limits.max_steps_in_flight = 2;
                                  }});
  const auto client = Connect({"a"});
  std::vector<std::unique_ptr<TestStep>> steps;
  std::vector<std::unique_ptr<ComputeClient::Step>> begun;
  for (uint32_t i = 0; i < 5; ++i) {
    steps.push_back(std::make_unique<TestStep>(worker->fixture.block,
                                               std::vector<uint32_t>{i}));
    begun.push_back(
        steps[i]->Begin(*client, absl::Now() + absl::Seconds(20)).value());
  }
  for (size_t i = 5; i-- > 0;) {
    for (const size_t layer : {0, 1}) {
      const absl::Status status = begun[i]->Layer(steps[i]->Io(layer));
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  for (const auto& step : begun) EXPECT_TRUE(step->Finish().ok());
  for (const auto& step : steps) step->ExpectRight();
}

TEST_F(ComputeClientTest, ErrorsOfTheStepComeBack) {
  const auto worker = StartWorker("a");
  const auto client = Connect({"a"});
  TestStep bad(worker->fixture.block, {client->model().config.vocab_size});
  const absl::Status applied = bad.Apply(*client);
  EXPECT_TRUE(absl::IsInvalidArgument(applied));
  EXPECT_THAT(std::string(applied.message()), HasSubstr(Address("a")));
  EXPECT_TRUE(absl::IsInvalidArgument(bad.Forward(*client)));

  TestStep good(worker->fixture.block, {1});
  auto step = good.Begin(*client);
  ASSERT_TRUE(step.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition((*step)->Finish()));
  ASSERT_TRUE((*step)->Layer(good.Io(0)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument((*step)->Layer(good.Io(0))));
  ASSERT_TRUE((*step)->Layer(good.Io(1)).ok());
  EXPECT_TRUE((*step)->Finish().ok());
}

// The first step of a client goes to the first address.

TEST_F(ComputeClientTest, ASecondWorkerTakesOverAForward) {
  auto first = StartWorker("a", {.mode = kWhenTold});
  const auto second = StartWorker("b");
  const auto client = Connect({"a", "b"});
  TestStep step(second->fixture.block, {1, 2, 3});
  absl::Status status;
  std::thread caller([&] { status = step.Forward(*client); });
  first->fixture.rows.AwaitFetches(2);
  first = nullptr;
  caller.join();
  EXPECT_TRUE(status.ok()) << status;
  step.ExpectRight();
}

TEST_F(ComputeClientTest, ASecondWorkerTakesOverAnApply) {
  auto first = StartWorker("a", {.mode = kWhenTold});
  const auto second = StartWorker("b");
  const auto client = Connect({"a", "b"});
  TestStep step(second->fixture.block, {1, 2, 3});
  absl::Status status;
  std::thread caller([&] { status = step.Apply(*client); });
  first->fixture.rows.AwaitFetches(2);
  first = nullptr;
  caller.join();
  EXPECT_TRUE(status.ok()) << status;
  step.ExpectRight();
}

TEST_F(ComputeClientTest, LayersThatHaveReturnedStayValid) {
  auto first = StartWorker("a");
  const auto second = StartWorker("b");
  const auto client = Connect({"a", "b"});
  TestStep step(second->fixture.block, {1, 2, 3});
  auto begun = step.Begin(*client);
  ASSERT_TRUE(begun.ok());
  ASSERT_TRUE((*begun)->Layer(step.Io(0)).ok());
  first = nullptr;
  const absl::Status status = (*begun)->Layer(step.Io(1));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE((*begun)->Finish().ok());
  step.ExpectRight();
  // Only the layer that was missing ran again.
  EXPECT_EQ(second->fixture.rows.started(), 1);
}

TEST_F(ComputeClientTest, AWorkerThatComesBackIsUsedAgain) {
  auto worker = StartWorker("a");
  const auto client = Connect({"a"});
  const test::FakeBlock block;
  TestStep before(block, {1, 2});
  ASSERT_TRUE(before.Forward(*client).ok());
  TestStep across(block, {3, 4});
  auto step = across.Begin(*client);
  ASSERT_TRUE(step.ok());
  ASSERT_TRUE((*step)->Layer(across.Io(1)).ok());
  worker = nullptr;
  worker = StartWorker("a");
  const absl::Status status = (*step)->Layer(across.Io(0));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE((*step)->Finish().ok());
  across.ExpectRight();
  TestStep after(block, {5});
  EXPECT_TRUE(after.Apply(*client).ok());
  EXPECT_TRUE(after.Forward(*client).ok());
}

TEST_F(ComputeClientTest, ADrainingWorkerIsLeft) {
  const auto first = StartWorker("a");
  const auto second = StartWorker("b");
  const auto client = Connect({"a", "b"});
  first->service->Drain();
  for (uint32_t i = 0; i < 4; ++i) {
    TestStep step(second->fixture.block, {i});
    EXPECT_TRUE(step.Forward(*client).ok());
    EXPECT_TRUE(step.Apply(*client).ok());
    step.ExpectRight();
  }
  EXPECT_EQ(first->fixture.block.forwards(), 0);
}

TEST_F(ComputeClientTest, AnOverloadedWorkerIsLeftForNow) {
  const auto full = StartWorker(
      "a", {.engine = [](auto& options) { options.max_steps_in_flight = 0; }});
  const auto second = StartWorker("b");
  const auto client = Connect({"a", "b"});
  for (uint32_t i = 0; i < 3; ++i) {
    TestStep step(second->fixture.block, {i});
    EXPECT_TRUE(step.Forward(*client).ok());
    EXPECT_TRUE(step.Apply(*client).ok());
  }
  const auto alone = Connect({"a"});
  TestStep step(second->fixture.block, {1});
  // Too short for one answer of a loaded machine says less.
  absl::Status status;
  for (auto time = absl::Milliseconds(100); time < absl::Seconds(30);
       time *= 2) {
    status = step.Apply(*alone, absl::Now() + time);
    ASSERT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    if (absl::StrContains(status.message(), "steps in flight")) break;
  }
  EXPECT_THAT(std::string(status.message()), HasSubstr("steps in flight"));
}

TEST_F(ComputeClientTest, StepsAreSpreadOverWorkers) {
  const auto first = StartWorker("a");
  const auto second = StartWorker("b");
  const auto client = Connect({"a", "b"});
  std::vector<std::unique_ptr<ComputeClient::Step>> steps;
  for (uint32_t i = 0; i < 6; ++i) {
    TestStep step(second->fixture.block, {i});
    steps.push_back(step.Begin(*client).value());
  }
  first->fixture.rows.AwaitFetches(6);
  second->fixture.rows.AwaitFetches(6);
}

TEST_F(ComputeClientTest, DeadlinesHold) {
  const auto worker = StartWorker("a", {.mode = kWhenTold});
  const auto client = Connect({"a"});
  TestStep step(worker->fixture.block, {1});
  auto begun = step.Begin(*client, absl::Now() + absl::Milliseconds(100));
  ASSERT_TRUE(begun.ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded((*begun)->Layer(step.Io(0))));
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      step.Apply(*client, absl::Now() + absl::Milliseconds(100))));
  EXPECT_TRUE(Eventually(
      [&] { return worker->fixture.engine->steps_in_flight() == 0; }));
  EXPECT_EQ(worker->fixture.rows.open(), 0);
}

TEST_F(ComputeClientTest, LayersHaveDeadlinesOfTheirOwn) {
  const auto worker = StartWorker("a", {.mode = kWhenTold});
  const auto client = Connect({"a"});
  TestStep step(worker->fixture.block, {1});
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  auto begun = step.Begin(
      *client, StepOptions{.deadline = Soon(),
                           .rows_deadlines = {{step.Io(0).layer, deadline}}});
  ASSERT_TRUE(begun.ok()) << begun.status();
  FakeRowSource& rows = worker->fixture.rows;
  rows.AwaitFetches(2);
  EXPECT_EQ(rows.layer(0), step.Io(0).layer);
  // By the worker's clock: what is left of the time is told.
  const absl::Time there = worker->fixture.clock.Now();
  EXPECT_LE(rows.deadline(0), there + absl::Seconds(20));
  EXPECT_GT(rows.deadline(0), there);
  EXPECT_GT(rows.deadline(1), there + absl::Seconds(20));
  rows.Complete(0, absl::DeadlineExceededError("rows are late"));
  const absl::Status status = (*begun)->Layer(step.Io(0));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the rows of layer 1"));
}

// The next worker is told of those only that it is to answer.
TEST_F(ComputeClientTest, DeadlinesOfLayersGoWithThemToTheNextWorker) {
  auto first = StartWorker("a");
  const auto second = StartWorker("b");
  const auto client = Connect({"a", "b"});
  TestStep step(second->fixture.block, {1, 2, 3});
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  auto begun = step.Begin(
      *client, StepOptions{.deadline = Soon(),
                           .rows_deadlines = {{step.Io(0).layer, deadline},
                                              {step.Io(1).layer, deadline}}});
  ASSERT_TRUE(begun.ok()) << begun.status();
  ASSERT_TRUE((*begun)->Layer(step.Io(0)).ok());
  first = nullptr;
  const absl::Status status = (*begun)->Layer(step.Io(1));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_LE(second->fixture.rows.deadline(0),
            second->fixture.clock.Now() + absl::Seconds(20));
  step.ExpectRight();
}

// The first worker had the rows in time: the next one has to get them again.
TEST_F(ComputeClientTest, ADeadlineOfALayerThatWasMetIsNotSetAnew) {
  auto first = StartWorker("a");
  const auto second = StartWorker("b");
  const auto client = Connect({"a", "b"});
  TestStep step(second->fixture.block, {1, 2, 3});
  const absl::Time deadline = absl::Now() + absl::Milliseconds(200);
  auto begun = step.Begin(
      *client, StepOptions{.deadline = Soon(),
                           .rows_deadlines = {{step.Io(1).layer, deadline}}});
  ASSERT_TRUE(begun.ok()) << begun.status();
  ASSERT_TRUE((*begun)->Layer(step.Io(0)).ok());
  EXPECT_TRUE(Eventually([&] { return absl::Now() > deadline; }));
  first = nullptr;
  const absl::Status status = (*begun)->Layer(step.Io(1));
  EXPECT_TRUE(status.ok()) << status;
  step.ExpectRight();
}

TEST_F(ComputeClientTest, ADeadlineOfALayerThatTheStepLacksIsRefused) {
  const auto worker = StartWorker("a");
  const auto client = Connect({"a"});
  TestStep step(worker->fixture.block, {1});
  EXPECT_TRUE(absl::IsInvalidArgument(
      step.Begin(*client,
                 StepOptions{.rows_deadlines = {{LayerId{99}, Soon()}}})
          .status()));
}

TEST_F(ComputeClientTest, DestroyingAStepCancelsIt) {
  const auto worker = StartWorker("a", {.mode = kWhenTold});
  const auto client = Connect({"a"});
  TestStep step(worker->fixture.block, {1});
  auto begun = step.Begin(*client);
  ASSERT_TRUE(begun.ok());
  worker->fixture.rows.AwaitFetches(2);
  begun->reset();
  EXPECT_TRUE(Eventually(
      [&] { return worker->fixture.engine->steps_in_flight() == 0; }));
  EXPECT_EQ(worker->fixture.rows.cancelled(), 2);
}

TEST_F(ComputeClientTest, VersionsAreNeverMixed) {
  const auto first = StartWorker("a");
  const auto other = StartWorker(
      "b", {.engine = [](auto& options) { options.version = "v2"; }});
  const auto client =
      ComputeClient::Create({.addresses = {Address("a"), Address("b")}});
  EXPECT_TRUE(absl::IsFailedPrecondition(client.status())) << client.status();
  EXPECT_THAT(std::string(client.status().message()), HasSubstr("v1"));
  EXPECT_THAT(std::string(client.status().message()), HasSubstr("v2"));
}

TEST_F(ComputeClientTest, AWorkerThatComesBackWithAnotherVersionIsRefused) {
  auto worker = StartWorker("a");
  const auto client = Connect({"a"});
  worker = nullptr;
  worker = StartWorker(
      "a", {.engine = [](auto& options) { options.version = "v2"; }});
  TestStep step(worker->fixture.block, {1});
  const absl::Status status = step.Forward(*client);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("v2"));
  EXPECT_EQ(worker->fixture.block.forwards(), 0);
}

TEST_F(ComputeClientTest, AWorkerThatComesBackWithAnotherVersionIsLeft) {
  auto first = StartWorker("a");
  const auto second = StartWorker("b");
  const auto client = Connect({"a", "b"});
  first = nullptr;
  first = StartWorker(
      "a", {.engine = [](auto& options) { options.version = "v2"; }});
  for (uint32_t i = 0; i < 4; ++i) {
    TestStep step(second->fixture.block, {i});
    const absl::Status forwarded = step.Forward(*client);
    EXPECT_TRUE(forwarded.ok()) << forwarded;
    const absl::Status applied = step.Apply(*client);
    EXPECT_TRUE(applied.ok()) << applied;
  }
  EXPECT_EQ(first->fixture.block.forwards(), 0);
}

TEST_F(ComputeClientTest, WaitsForAWorkerThatIsNotUpYet) {
  std::unique_ptr<TestWorker> worker;
  std::thread starter([&] { worker = StartWorker("late"); });
  const auto client = Connect({"late"});
  starter.join();
  TestStep step(worker->fixture.block, {1});
  EXPECT_TRUE(step.Forward(*client).ok());
}

TEST_F(ComputeClientTest, NobodyThere) {
  const auto client =
      ComputeClient::Create({.addresses = {Address("nobody")},
                             .connect_timeout = absl::Milliseconds(50)});
  EXPECT_TRUE(absl::IsUnavailable(client.status()));
  EXPECT_THAT(std::string(client.status().message()), HasSubstr("nobody"));
  EXPECT_TRUE(absl::IsInvalidArgument(ComputeClient::Create({}).status()));
}

}  // namespace
}  // namespace engram
