#include "engram_client/ctl/load_recorder.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/wire/error_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram::ctl {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

constexpr LoadRecorder::Which kFirst = {.size_index = 0};
constexpr LoadRecorder::Which kSecond = {.size_index = 1};
constexpr LoadRecorder::Which kWarmup = {.measured = false};

LoadRecorder::Times After(absl::Duration latency) {
  return {.latency = latency, .overrun = latency - absl::Seconds(1)};
}

TEST(LoadRecorderTest, CountsBySize) {
  LoadRecorder recorder(2, 0);
  for (int i = 0; i < 3; ++i) recorder.Sent(kFirst, absl::Microseconds(i));
  recorder.Sent(kSecond, absl::Microseconds(9));
  recorder.NotSent(kSecond, false);
  recorder.NotSent(kSecond, true);
  const LoadAnswer answer = {
      .units = 48, .bytes = 480, .units_checked = 24, .server_calls = 2};
  recorder.Ended(kFirst, After(absl::Milliseconds(1)), absl::OkStatus(),
                 answer);
  recorder.Ended(kFirst, After(absl::Milliseconds(3)), absl::OkStatus(),
                 answer);
  recorder.Ended(kFirst, After(absl::Milliseconds(1004)),
                 absl::DeadlineExceededError("late"), {.server_calls = 5});
  const LoadResults results = recorder.results();
  ASSERT_THAT(results.sizes, SizeIs(2));
  const LoadCounts& first = results.sizes[0];
  EXPECT_EQ(first.calls, 3);
  EXPECT_EQ(first.ok, 2);
  EXPECT_EQ(first.failed, 1);
  EXPECT_EQ(first.units, 96);
  EXPECT_EQ(first.bytes, 960);
  EXPECT_EQ(first.units_checked, 48);
  EXPECT_EQ(first.server_calls, 9);
  EXPECT_EQ(first.latency.max(), absl::Milliseconds(3));
  EXPECT_EQ(results.sizes[1].calls, 1);
  EXPECT_EQ(results.sizes[1].not_sent, 2);
  EXPECT_EQ(results.not_sent_for_checks, 1);
  EXPECT_EQ(results.send_delay.max(), absl::Microseconds(9));
  EXPECT_EQ(results.deadline_overrun, absl::Milliseconds(4));
  const LoadCounts sum = results.Sum();
  EXPECT_EQ(sum.calls, 4);
  EXPECT_EQ(sum.not_sent, 2);
  EXPECT_EQ(sum.latency.count(), 2);
}

TEST(LoadRecorderTest, FailuresByCodeAndReason) {
  LoadRecorder recorder(1, 0);
  const auto fail = [&](const absl::Status& status, int ms) {
    recorder.Ended(kFirst, After(absl::Milliseconds(ms)), status, {});
  };
  fail(absl::UnavailableError("plain"), 1);
  fail(MakeError(ErrorReason::kDraining, "draining"), 2);
  fail(absl::UnavailableError("plain again"), 3);
  const auto failure = [](const char* code, const char* reason, uint64_t count,
                          const char* message) {
    return testing::AllOf(Field(&LoadFailure::code, code),
                          Field(&LoadFailure::reason, reason),
                          Field(&LoadFailure::count, count),
                          Field(&LoadFailure::first_message, message));
  };
  const LoadResults results = recorder.results();
  EXPECT_THAT(results.failures,
              ElementsAre(failure("UNAVAILABLE", "", 2, "plain"),
                          failure("UNAVAILABLE", "DRAINING", 1, "draining")));
  EXPECT_EQ(results.failures[0].latency.max(), absl::Milliseconds(3));
  EXPECT_EQ(results.sizes[0].latency.count(), 0);
  EXPECT_EQ(LoadExitCode(results), 2);
}

TEST(LoadRecorderTest, KindsOfFailureAreBounded) {
  LoadRecorder recorder(1, 0);
  for (const ErrorReason reason :
       {ErrorReason::kWrongTable, ErrorReason::kPartitionNotHere,
        ErrorReason::kRowOutOfRange, ErrorReason::kOverloaded}) {
    for (int code = 1; code <= 16; ++code) {
      absl::Status status(static_cast<absl::StatusCode>(code), "m");
      MakeError(reason, "r")
          .ForEachPayload(
              [&](absl::string_view url, const absl::Cord& payload) {
                status.SetPayload(url, payload);
              });
      recorder.Ended(kFirst, After({}), status, {});
    }
  }
  const LoadResults results = recorder.results();
  ASSERT_THAT(results.failures, SizeIs(LoadRecorder::kMaxFailures + 1));
  EXPECT_EQ(results.failures.back().code, "OTHER");
  EXPECT_EQ(results.failures.back().count, 64 - LoadRecorder::kMaxFailures);
  EXPECT_EQ(results.Sum().failed, 64);
}

TEST(LoadRecorderTest, TheWarmupIsKeptApart) {
  LoadRecorder recorder(1, -1);
  recorder.Sent(kWarmup, absl::Seconds(1));
  recorder.Ended(kWarmup, After(absl::Seconds(5)),
                 absl::DeadlineExceededError("m"), {});
  recorder.NotSent(kWarmup, true);
  EXPECT_TRUE(recorder.in_second());
  const LoadSecond second = recorder.Cut(0, 7);
  EXPECT_FALSE(recorder.in_second());
  EXPECT_EQ(second.from_seconds, -1);
  EXPECT_EQ(second.sent, 1);
  EXPECT_EQ(second.failed, 1);
  EXPECT_EQ(second.not_sent, 1);
  EXPECT_EQ(second.in_flight, 7);
  const LoadResults results = recorder.results();
  EXPECT_EQ(results.warmup_calls, 1);
  EXPECT_EQ(results.warmup_failed, 1);
  EXPECT_EQ(results.warmup_not_sent, 1);
  EXPECT_EQ(results.Sum().calls, 0);
  EXPECT_THAT(results.failures, IsEmpty());
  EXPECT_EQ(results.send_delay.count(), 0);
  EXPECT_EQ(LoadExitCode(results), 0);
}

TEST(LoadRecorderTest, EachSecondHasItsOwnQuantiles) {
  LoadRecorder recorder(1, 0);
  recorder.Ended(kFirst, After(absl::Milliseconds(100)), absl::OkStatus(), {});
  recorder.Cut(1.25, 0);
  recorder.Ended(kFirst, After(absl::Milliseconds(1)), absl::OkStatus(), {});
  recorder.Cut(2, 0);
  const LoadResults results = recorder.results();
  ASSERT_THAT(results.seconds, SizeIs(2));
  EXPECT_EQ(results.seconds[0].max, absl::Milliseconds(100));
  EXPECT_EQ(results.seconds[1].from_seconds, 1.25);
  EXPECT_EQ(results.seconds[1].seconds, 0.75);
  EXPECT_EQ(results.seconds[1].ok, 1);
  EXPECT_EQ(results.seconds[1].max, absl::Milliseconds(1));
}

TEST(LoadRecorderTest, WrongContentIsNoGoodAnswer) {
  LoadRecorder recorder(1, 0);
  LoadAnswer answer = {.units = 24};
  answer.mismatch = LoadMismatch{.item = 5};
  recorder.Ended(kFirst, After({}), absl::OkStatus(), answer);
  answer.mismatch->item = 6;
  recorder.Ended(kWarmup, After({}), absl::OkStatus(), answer);
  const LoadResults results = recorder.results();
  EXPECT_EQ(results.mismatch->item, 5);
  EXPECT_EQ(results.Sum().wrong, 1);
  EXPECT_EQ(results.Sum().ok, 0);
  EXPECT_EQ(results.Sum().units, 0);
  EXPECT_EQ(LoadExitCode(results), 3);
}

TEST(LoadExitCodeTest, WhatDidNotEndIsAFailureUnlessTheUserEndedIt) {
  LoadResults results;
  EXPECT_EQ(LoadExitCode(results), 0);
  results.unfinished = 1;
  EXPECT_EQ(LoadExitCode(results), 2);
  results.interrupted = true;
  EXPECT_EQ(LoadExitCode(results), 0);
}

}  // namespace
}  // namespace engram::ctl
