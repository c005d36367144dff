#include "engram_client/compute/worker_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/testing/temp_dir.h"
#include "tests/unit/engram_client/compute/silent_worker.h"

namespace engram {
namespace {

class WorkerLinkTest : public ::testing::Test {
 protected:
  WorkerLink::Place Add(uint64_t tokens = 1, uint64_t max_steps = 0) {
    return link_->AddStep({.step = std::make_shared<StepReplies>(), .run = 0},
                          tokens, max_steps);
  }

  const test::TempDir dir_;
  const std::string address_ = "unix:" + dir_.File("worker");
  test::SilentWorker worker_{address_, {}};
  std::unique_ptr<WorkerLink> link_ = std::make_unique<WorkerLink>(address_);
};

v1::ForwardRequest Begin(uint64_t step_id) {
  v1::ForwardRequest request;
  request.set_step_id(step_id);
  request.mutable_begin();
  return request;
}

v1::ForwardRequest Chunk(uint64_t step_id) {
  v1::ForwardRequest request;
  request.set_step_id(step_id);
  request.mutable_layer()->set_streams(std::string(64 << 10, 'x'));
  return request;
}

TEST_F(WorkerLinkTest, LargeStepsHaveStreamsOfTheirOwn) {
  const auto small = Add(64).stream;
  const auto large = Add(65).stream;
  EXPECT_NE(small, large);
  EXPECT_EQ(Add(1).stream, small);
  EXPECT_EQ(Add(1000).stream, large);
}

TEST_F(WorkerLinkTest, AStreamHasNoMoreStepsThanItTakes) {
  std::vector<WorkerLink::Place> places;
  for (int i = 0; i < 5; ++i) places.push_back(Add(1, 2));
  EXPECT_EQ(places[1].stream, places[0].stream);
  EXPECT_NE(places[2].stream, places[0].stream);
  EXPECT_EQ(places[3].stream, places[2].stream);
  EXPECT_EQ(places[4].stream->steps_in_flight(), 1);
  // Places that are free again are used again.
  places[0].stream->RemoveStep(places[0].step_id);
  places[0].stream->RemoveStep(places[1].step_id);
  EXPECT_EQ(Add(1, 2).stream, places[0].stream);
}

TEST_F(WorkerLinkTest, StreamsAreBounded) {
  std::set<std::shared_ptr<ForwardStream>> streams;
  for (int i = 0; i < 100; ++i) streams.insert(Add(1, 1).stream);
  EXPECT_EQ(streams.size(), 16);
}

TEST_F(WorkerLinkTest, NoStreamOutlivesTheLink) {
  // A stream that did would end its channel on a thread of gRPC.
  for (int i = 0; i < 100; ++i) {
    std::vector<std::weak_ptr<ForwardStream>> streams;
    {
      const auto broken = Add().stream;
      broken->Cancel();
      while (!broken->broken()) std::this_thread::yield();
      streams = {broken, Add().stream, Add(1000).stream};
      EXPECT_NE(streams[1].lock(), broken);
    }
    link_ = nullptr;
    for (const auto& stream : streams) EXPECT_TRUE(stream.expired());
    link_ = std::make_unique<WorkerLink>(address_);
  }
}

TEST_F(WorkerLinkTest, WhatARemovedStepHasNotSentIsDropped) {
  const auto first = Add();
  const auto second = Add();
  const auto third = Add();
  ForwardStream& stream = *first.stream;
  ASSERT_EQ(third.stream.get(), &stream);
  // Far more than is on its way while the worker does not read.
  constexpr int kChunks = 400;
  stream.Send(Begin(first.step_id));
  for (int i = 0; i < kChunks; ++i) stream.Send(Chunk(first.step_id));
  stream.Send(Begin(second.step_id));
  stream.Send(Chunk(second.step_id));
  // In this order: the second stands behind all of the first.
  stream.RemoveStep(second.step_id);
  stream.RemoveStep(first.step_id);
  stream.Send(Begin(third.step_id));

  worker_.Read();
  const auto read =
      worker_.AwaitRead(third.step_id, v1::ForwardRequest::kBegin);
  const auto count = [&](const WorkerLink::Place& place,
                         v1::ForwardRequest::KindCase kind) {
    return std::count_if(read.begin(), read.end(), [&](const auto& request) {
      return request.step_id() == place.step_id && request.kind_case() == kind;
    });
  };
  EXPECT_LT(count(first, v1::ForwardRequest::kLayer), kChunks / 2);
  EXPECT_EQ(count(first, v1::ForwardRequest::kCancel), 1);
  // The worker never hears of a step whose begin was not sent.
  for (const auto kind :
       {v1::ForwardRequest::kBegin, v1::ForwardRequest::kLayer,
        v1::ForwardRequest::kCancel}) {
    EXPECT_EQ(count(second, kind), 0);
  }
}

}  // namespace
}  // namespace engram
