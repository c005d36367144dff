#include "compute/worker/service.h"

#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "core/model/config.h"
#include "core/rpc/channel.h"
#include "core/wire/error_detail.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/compute/worker/test_worker.h"

namespace engram {
namespace {

using test::Eventually;
using test::FakeRowSource;
using test::MakeSequence;
using test::Soon;
using test::Streams;
using test::TestWorker;
using test::WantedStreams;
using ::testing::HasSubstr;

using ForwardStub =
    grpc::ClientReaderWriter<v1::ForwardRequest, v1::ForwardResponse>;

constexpr auto kWhenTold = FakeRowSource::Mode::kWhenTold;

class ServiceTest : public ::testing::Test {
 protected:
  void Start(TestWorker::Options options = {}) {
    worker_ = std::make_unique<TestWorker>("unix:" + dir_.File("w"), options);
    stub_ =
        v1::ComputeService::NewStub(MakeChannel(worker_->server->address()));
    context_.set_deadline(absl::ToChronoTime(Soon()));
  }
  const test::FakeBlock& block() { return worker_->fixture.block; }
  FakeRowSource& rows() { return worker_->fixture.rows; }
  StepEngine& engine() { return *worker_->fixture.engine; }
  uint32_t Layer(size_t index) { return block().config().layer_ids[index]; }

  v1::ApplyRequest MakeApply(const std::vector<uint32_t>& tokens) {
    v1::ApplyRequest request;
    *request.add_sequences() = MakeSequence(tokens);
    request.set_dtype(v1::STREAM_DTYPE_BF16);
    request.set_return_kind(v1::RETURN_KIND_STREAMS);
    for (const size_t index : {1, 0}) {
      v1::LayerStreams& layer = *request.add_layers();
      layer.set_layer_id(Layer(index));
      layer.set_streams(Streams(block(), tokens.size()));
    }
    return request;
  }
  absl::Status Apply(const v1::ApplyRequest& request,
                     v1::ApplyResponse* response) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(Soon()));
    return FromGrpcStatus(stub_->Apply(&context, request, response));
  }

  v1::ForwardRequest MakeBegin(uint64_t id,
                               const std::vector<uint32_t>& tokens) {
    v1::ForwardRequest request;
    request.set_step_id(id);
    *request.mutable_begin()->add_sequences() = MakeSequence(tokens);
    request.mutable_begin()->set_dtype(v1::STREAM_DTYPE_BF16);
    request.mutable_begin()->set_return_kind(v1::RETURN_KIND_STREAMS);
    return request;
  }
  v1::ForwardRequest MakeLayer(uint64_t id, size_t layer_index,
                               const std::string& streams) {
    v1::ForwardRequest request;
    request.set_step_id(id);
    request.mutable_layer()->set_layer_id(Layer(layer_index));
    request.mutable_layer()->set_streams(streams);
    return request;
  }
  absl::Status ReadEnd(ForwardStub& stream, uint64_t id) {
    v1::ForwardResponse response;
    EXPECT_TRUE(stream.Read(&response));
    EXPECT_EQ(response.step_id(), id);
    EXPECT_EQ(response.kind_case(), v1::ForwardResponse::kEnd);
    return FromRpcStatusProto(response.end().status());
  }

  test::TempDir dir_;
  std::unique_ptr<TestWorker> worker_;
  std::unique_ptr<v1::ComputeService::Stub> stub_;
  grpc::ClientContext context_;
};

TEST_F(ServiceTest, GetModelTellsShapesAndLimits) {
  Start();
  v1::GetModelResponse model;
  ASSERT_TRUE(stub_->GetModel(&context_, {}, &model).ok());
  EXPECT_EQ(model.version(), "v1");
  EXPECT_EQ(ParseConfig(model.config_json()).value(), block().config());
  EXPECT_EQ(model.layer_ids_size(), 2);
  EXPECT_EQ(model.hc_mult(), block().config().hc_mult);
  EXPECT_EQ(model.dim(), block().config().dim);
  EXPECT_EQ(model.max_tokens_per_step(), 4096);
  EXPECT_EQ(model.max_chunk_bytes(), 1 << 20);
  EXPECT_EQ(model.max_apply_bytes(), 60 << 20);
  EXPECT_EQ(model.step_timeout_us(), 60'000'000);
  EXPECT_EQ(model.worker_name(), "w0");
  EXPECT_TRUE(model.ready());
}

TEST_F(ServiceTest, ApplyAnswersLayersInTheOrderAsked) {
  Start();
  const std::vector<uint32_t> tokens = {1, 2, 3};
  v1::ApplyResponse response;
  const absl::Status status = Apply(MakeApply(tokens), &response);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(response.version(), "v1");
  ASSERT_EQ(response.layers_size(), 2);
  EXPECT_EQ(response.layers(0).layer_id(), Layer(1));
  EXPECT_EQ(response.layers(0).streams(),
            WantedStreams(block(), 1, tokens, {}, Streams(block(), 3)));
  EXPECT_EQ(response.layers(1).layer_id(), Layer(0));
  EXPECT_EQ(response.layers(1).streams(),
            WantedStreams(block(), 0, tokens, {}, Streams(block(), 3)));
  EXPECT_EQ(engine().steps_in_flight(), 0);
}

TEST_F(ServiceTest, ApplyStreamsMustMatchTheTokens) {
  Start({.mode = kWhenTold});
  v1::ApplyRequest request = MakeApply({1, 2, 3});
  request.mutable_layers(1)->mutable_streams()->resize(100);
  v1::ApplyResponse response;
  const absl::Status status = Apply(request, &response);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("100 bytes"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(std::to_string(Streams(block(), 3).size())));
  EXPECT_EQ(rows().started(), 0);
}

TEST_F(ServiceTest, AnApplyAboveTheLimitIsTooLarge) {
  Start();
  v1::ApplyRequest request = MakeApply({1, 2, 3});
  request.mutable_layers(0)->mutable_streams()->resize(kMaxApplyBytes);
  v1::ApplyResponse response;
  const absl::Status status = Apply(request, &response);
  EXPECT_EQ(ReasonOf(status), ErrorReason::kTooLarge) << status;
  EXPECT_EQ(MetadataOf(status, "value"),
            std::to_string(request.ByteSizeLong()));
  EXPECT_EQ(MetadataOf(status, "limit"), std::to_string(kMaxApplyBytes));
}

TEST_F(ServiceTest, AppliesAreBoundedTogether) {
  Start({.mode = kWhenTold, .engine = [](StepEngine::Options& options) {
           options.max_tokens_per_step = 4;
           options.max_stream_bytes = 1;  // raised to one float32 step's
         }});
  // A bf16 step's streams are half of that, and its message is more.
  const v1::ApplyRequest request = MakeApply({1, 2, 3, 4});
  const auto held = [&] {
    return worker_->fixture.metrics.stream_bytes().Value();
  };
  absl::Status first;
  v1::ApplyResponse first_response;
  std::thread caller([&] { first = Apply(request, &first_response); });
  rows().AwaitFetches(2);
  EXPECT_EQ(held(), request.ByteSizeLong());
  v1::ApplyResponse response;
  const absl::Status second = Apply(request, &response);
  EXPECT_EQ(ReasonOf(second), ErrorReason::kOverloaded) << second;
  rows().Complete(0);
  rows().Complete(1);
  caller.join();
  EXPECT_TRUE(first.ok()) << first;
  EXPECT_TRUE(Eventually([&] { return held() == 0; }));
}

TEST_F(ServiceTest, ReasonsTravel) {
  Start();
  v1::ApplyRequest request = MakeApply({1});
  request.set_version("v2");
  v1::ApplyResponse response;
  EXPECT_EQ(ReasonOf(Apply(request, &response)), ErrorReason::kWrongTable);
  request = MakeApply({1});
  request.mutable_layers(0)->set_layer_id(77);
  EXPECT_EQ(ReasonOf(Apply(request, &response)), ErrorReason::kUnknownLayer);
}

TEST_F(ServiceTest, ACancelledApplyCostsNothingMore) {
  Start({.mode = kWhenTold});
  absl::Status status;
  std::thread caller([&] {
    v1::ApplyResponse response;
    status = FromGrpcStatus(
        stub_->Apply(&context_, MakeApply({1, 2, 3}), &response));
  });
  rows().AwaitFetches(2);
  context_.TryCancel();
  caller.join();
  EXPECT_TRUE(absl::IsCancelled(status));
  EXPECT_TRUE(Eventually([&] { return engine().steps_in_flight() == 0; }));
  EXPECT_EQ(rows().cancelled(), 2);
  EXPECT_EQ(block().forwards(), 0);
}

TEST_F(ServiceTest, AnApplyPastItsDeadlineCostsNothingMore) {
  Start({.mode = kWhenTold});
  grpc::ClientContext context;
  context.set_deadline(
      absl::ToChronoTime(absl::Now() + absl::Milliseconds(50)));
  v1::ApplyResponse response;
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      FromGrpcStatus(stub_->Apply(&context, MakeApply({1, 2, 3}), &response))));
  EXPECT_TRUE(Eventually([&] { return engine().steps_in_flight() == 0; }));
  EXPECT_EQ(rows().open(), 0);
  EXPECT_EQ(block().forwards(), 0);
}

TEST_F(ServiceTest, ForwardRunsStepsBesideEachOther) {
  Start();
  const std::string streams = Streams(block(), 1);
  auto stream = stub_->Forward(&context_);
  for (uint64_t id = 1; id <= 3; ++id) stream->Write(MakeBegin(id, {5}));
  // In another order than they began.
  for (const uint64_t id : {3, 1, 2}) {
    for (const size_t layer : {1, 0}) {
      ASSERT_TRUE(stream->Write(MakeLayer(id, layer, streams)));
      v1::ForwardResponse response;
      ASSERT_TRUE(stream->Read(&response));
      EXPECT_EQ(response.step_id(), id);
      EXPECT_EQ(response.result().result().layer_id(), Layer(layer));
      EXPECT_EQ(response.result().result().streams(),
                WantedStreams(block(), layer, {5}, {}, streams));
    }
    EXPECT_TRUE(ReadEnd(*stream, id).ok());
  }
  stream->WritesDone();
  v1::ForwardResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ServiceTest, AFailedStepLeavesTheStreamAlive) {
  Start();
  auto stream = stub_->Forward(&context_);
  v1::ForwardRequest begin = MakeBegin(1, {5});
  begin.mutable_begin()->set_version("v2");
  stream->Write(begin);
  EXPECT_EQ(ReasonOf(ReadEnd(*stream, 1)), ErrorReason::kWrongTable);
  stream->Write(MakeBegin(2, {5}));
  stream->Write(MakeLayer(2, 0, "short"));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadEnd(*stream, 2)));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ServiceTest, ADeadCallersStepsAreFreed) {
  Start({.mode = kWhenTold});
  auto stream = stub_->Forward(&context_);
  for (uint64_t id = 1; id <= 3; ++id) stream->Write(MakeBegin(id, {5}));
  rows().AwaitFetches(6);
  stream->Write(MakeLayer(1, 0, Streams(block(), 1)));
  context_.TryCancel();
  EXPECT_TRUE(absl::IsCancelled(FromGrpcStatus(stream->Finish())));
  EXPECT_TRUE(Eventually([&] { return engine().steps_in_flight() == 0; }));
  EXPECT_EQ(rows().cancelled(), 6);
  EXPECT_EQ(worker_->fixture.metrics.stream_bytes().Value(), 0);
  EXPECT_TRUE(Eventually(
      [&] { return worker_->fixture.metrics.forward_streams().Value() == 0; }));
}

TEST_F(ServiceTest, AMessageWithoutAKindEndsTheStream) {
  Start({.mode = kWhenTold});
  auto stream = stub_->Forward(&context_);
  stream->Write(MakeBegin(1, {5}));
  stream->Write(v1::ForwardRequest());
  v1::ForwardResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_TRUE(absl::IsInvalidArgument(FromGrpcStatus(stream->Finish())));
  EXPECT_TRUE(Eventually([&] { return engine().steps_in_flight() == 0; }));
}

TEST_F(ServiceTest, DrainingLetsStepsInFlightEnd) {
  Start({.mode = kWhenTold});
  const std::string streams = Streams(block(), 1);
  auto stream = stub_->Forward(&context_);
  stream->Write(MakeBegin(1, {5}));
  rows().AwaitFetches(2);
  worker_->service->Drain();
  v1::ApplyResponse applied;
  EXPECT_EQ(ReasonOf(Apply(MakeApply({1}), &applied)), ErrorReason::kDraining);
  stream->Write(MakeBegin(2, {5}));
  EXPECT_EQ(ReasonOf(ReadEnd(*stream, 2)), ErrorReason::kDraining);
  rows().Complete(0);
  rows().Complete(1);
  for (const size_t layer : {0, 1}) {
    stream->Write(MakeLayer(1, layer, streams));
    v1::ForwardResponse response;
    ASSERT_TRUE(stream->Read(&response));
  }
  EXPECT_TRUE(ReadEnd(*stream, 1).ok());
  v1::ForwardResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(ReasonOf(FromGrpcStatus(stream->Finish())), ErrorReason::kDraining);

  grpc::ClientContext late;
  EXPECT_EQ(ReasonOf(FromGrpcStatus(stub_->Forward(&late)->Finish())),
            ErrorReason::kDraining);
}

TEST_F(ServiceTest, ACallerThatDoesNotReadIsNotReadEither) {
  Start({.limits = [](ForwardLimits& limits) {
    limits.max_held_bytes = 1;
    limits.max_queued_replies = 4;
  }});
  const std::string streams = Streams(block(), 1);
  auto stream = stub_->Forward(&context_);
  constexpr uint64_t kSteps = 50;
  std::thread writer([&] {
    for (uint64_t id = 1; id <= kSteps; ++id) {
      stream->Write(MakeBegin(id, {5}));
      stream->Write(MakeLayer(id, 0, streams));
      stream->Write(MakeLayer(id, 1, streams));
    }
    stream->WritesDone();
  });
  v1::ForwardResponse response;
  uint64_t ends = 0;
  while (stream->Read(&response)) {
    if (response.has_end() && response.end().status().code() == 0) ++ends;
  }
  writer.join();
  EXPECT_EQ(ends, kSteps);
  EXPECT_TRUE(stream->Finish().ok());
}

}  // namespace
}  // namespace engram
