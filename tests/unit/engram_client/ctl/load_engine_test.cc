#include "engram_client/ctl/load_engine.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/notification.h"
#include "engram_client/rpc/timer_queue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram::ctl {
namespace {

using testing::SizeIs;

// Answers as the test says, at once or when it is told to.
class FakeTarget final : public LoadTarget {
 public:
  enum class Way { kAtOnce, kHold };

  FakeTarget(const LoadEngine::Options& options, Way way)
      : way_(way), states_(LoadEngine::SlotCount(options)) {}

  std::string unit() const override { return "rows"; }
  std::string version() const override { return "v"; }

  void Prepare(size_t slot, const LoadCall& /*call*/) override {
    Move(slot, {State::kFree, State::kPrepared}, State::kPrepared);
  }
  void Start(size_t slot, absl::Time deadline, Done done) override {
    Move(slot, {State::kPrepared}, State::kStarted);
    EXPECT_GT(deadline, absl::Now() - absl::Minutes(1));
    if (on_start) on_start();
    if (way_ == Way::kAtOnce) return done(status);
    MutexLock lock(&mutex_);
    held_.push_back(std::move(done));
    most_held_ = std::max(most_held_, held_.size());
  }
  LoadAnswer Finish(size_t slot, const absl::Status& ended) override {
    EXPECT_EQ(ended, status);
    Move(slot, {State::kStarted}, State::kFree);
    return answer(++finished_);
  }

  void Release() {
    std::vector<Done> held;
    {
      MutexLock lock(&mutex_);
      std::swap(held, held_);
    }
    for (Done& done : held) done(status);
  }
  size_t most_held() const {
    MutexLock lock(&mutex_);
    return most_held_;
  }

  absl::Status status;
  std::function<void()> on_start;
  std::function<LoadAnswer(uint64_t)> answer = [](uint64_t) {
    return LoadAnswer{.units = 2, .bytes = 20, .units_checked = 2};
  };

 private:
  enum class State { kFree, kPrepared, kStarted };

  void Move(size_t slot, const std::vector<State>& from, State to) {
    MutexLock lock(&mutex_);
    EXPECT_THAT(from, testing::Contains(states_.at(slot)));
    states_[slot] = to;
  }

  const Way way_;
  mutable Mutex mutex_;
  std::vector<State> states_ ABSL_GUARDED_BY(mutex_);
  std::vector<Done> held_ ABSL_GUARDED_BY(mutex_);
  size_t most_held_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<uint64_t> finished_ = 0;
};

// 200 calls in a fifth of a second.
LoadEngine::Options Even() {
  return {.schedule = {.arrivals = Arrivals::kEven,
                       .calls_per_second = 1000,
                       .sizes = {{24, 1}, {48, 1}}},
          .duration = absl::Seconds(0.2),
          .deadline = absl::Seconds(10),
          .max_in_flight = 8,
          .threads = 2};
}

// `then` is called each time the run waits.
LoadEngine::Hooks Hooks(std::function<bool()> then = nullptr,
                        std::vector<LoadSecond>* seconds = nullptr) {
  return {.wait =
              [then = std::move(then)](absl::Duration time) {
                std::this_thread::sleep_for(absl::ToChronoNanoseconds(
                    std::min(time, absl::Milliseconds(1))));
                return then != nullptr && then();
              },
          .on_second =
              [seconds](const LoadSecond& second) {
                if (seconds != nullptr) seconds->push_back(second);
              }};
}

TEST(LoadEngineTest, SendsWhatTheScheduleHas) {
  LoadEngine::Options options = Even();
  options.max_in_flight = 300;
  options.warmup = absl::Seconds(0.1);
  options.check_threads = 2;
  FakeTarget target(options, FakeTarget::Way::kAtOnce);
  LoadEngine engine(options, &target);
  std::vector<LoadSecond> seconds;
  const LoadResults results = engine.Run(Hooks(nullptr, &seconds));
  ASSERT_THAT(results.sizes, SizeIs(2));
  EXPECT_GT(results.sizes[0].calls, 50);
  EXPECT_GT(results.sizes[1].calls, 50);
  const LoadCounts sum = results.Sum();
  EXPECT_EQ(sum.calls, 200);
  EXPECT_EQ(sum.ok, 200);
  EXPECT_EQ(sum.units, 400);
  EXPECT_EQ(sum.latency.count(), 200);
  EXPECT_EQ(results.warmup_calls, 100);
  EXPECT_EQ(results.unfinished, 0);
  EXPECT_DOUBLE_EQ(results.measured_seconds, 0.2);
  uint64_t sent = 0, ok = 0;
  for (const LoadSecond& second : seconds) {
    sent += second.sent;
    ok += second.ok;
  }
  EXPECT_EQ(sent, 300);
  EXPECT_EQ(ok, 300);
  EXPECT_DOUBLE_EQ(seconds[0].from_seconds, -0.1);
  // The second one begins with the end of the warm-up, or soon after.
  if (seconds.size() > 1) {
    EXPECT_GE(seconds[1].from_seconds, 0);
  }
  EXPECT_EQ(LoadExitCode(results), 0);
}

TEST(LoadEngineTest, CallsBeyondTheLimitAreNotSent) {
  LoadEngine::Options options = Even();
  options.deadline = absl::Milliseconds(1);
  options.grace = absl::Milliseconds(10);
  FakeTarget target(options, FakeTarget::Way::kHold);
  LoadEngine engine(options, &target);
  const LoadResults results = engine.Run(Hooks());
  EXPECT_EQ(target.most_held(), options.max_in_flight);
  EXPECT_EQ(results.Sum().calls, options.max_in_flight);
  EXPECT_EQ(results.Sum().not_sent, 200 - options.max_in_flight);
  EXPECT_EQ(results.not_sent_for_checks, 0);
  // They never end, which does not keep the run.
  EXPECT_EQ(results.unfinished, options.max_in_flight);
  EXPECT_EQ(LoadExitCode(results), 2);
  target.Release();
}

TEST(LoadEngineTest, ChecksThatAreBehindAreTold) {
  LoadEngine::Options options = Even();
  options.deadline = absl::Milliseconds(1);
  options.grace = absl::Milliseconds(10);
  FakeTarget target(options, FakeTarget::Way::kAtOnce);
  LoadEngine engine(options, &target);
  Notification over;
  target.answer = [&](uint64_t) {
    over.Wait();
    return LoadAnswer{};
  };
  const LoadResults results = engine.Run(Hooks());
  EXPECT_EQ(results.Sum().calls, options.max_in_flight);
  EXPECT_EQ(results.Sum().not_sent, 200 - options.max_in_flight);
  EXPECT_EQ(results.not_sent_for_checks, results.Sum().not_sent);
  over.Notify();
}

// A load that waits for answers, or for itself, would see one slow call here
// and hide that the others came late.
TEST(LoadEngineTest, LatencyCountsFromTheScheduledTime) {
  constexpr absl::Duration kHeldUp = absl::Milliseconds(100);
  LoadEngine::Options options = Even();
  options.threads = 1;
  options.max_in_flight = 200;
  FakeTarget target(options, FakeTarget::Way::kAtOnce);
  LoadEngine engine(options, &target);
  absl::Time begin = absl::InfiniteFuture();
  target.on_start = [&] {
    begin = std::min(begin, SteadyNow());
    while (SteadyNow() - begin < kHeldUp) std::this_thread::yield();
  };
  const LoadResults results = engine.Run(Hooks());
  const LatencyHistogram latency = results.Sum().latency;
  EXPECT_EQ(latency.count(), 200);
  EXPECT_GE(latency.max(), kHeldUp);
  EXPECT_GE(results.send_delay.max(), kHeldUp / 2);
  // Half of the calls were due in that time, on the average half-way.
  EXPECT_GE(latency.mean(), kHeldUp / 5);
}

TEST(LoadEngineTest, FailuresAreCounted) {
  LoadEngine::Options options = Even();
  options.max_in_flight = 200;
  FakeTarget target(options, FakeTarget::Way::kAtOnce);
  target.status = absl::UnavailableError("nobody there");
  LoadEngine engine(options, &target);
  const LoadResults results = engine.Run(Hooks());
  EXPECT_EQ(results.Sum().failed, 200);
  ASSERT_THAT(results.failures, SizeIs(1));
  EXPECT_EQ(results.failures[0].first_message, "nobody there");
  EXPECT_EQ(LoadExitCode(results), 2);
}

TEST(LoadEngineTest, WrongContentEndsTheRun) {
  LoadEngine::Options options = Even();
  options.duration = absl::Hours(1);
  FakeTarget target(options, FakeTarget::Way::kAtOnce);
  target.answer = [](uint64_t finished) {
    LoadAnswer answer;
    if (finished == 7) answer.mismatch = LoadMismatch{.item = 99};
    return answer;
  };
  LoadEngine engine(options, &target);
  const LoadResults results = engine.Run(Hooks());
  ASSERT_TRUE(results.mismatch.has_value());
  EXPECT_EQ(results.mismatch->item, 99);
  EXPECT_EQ(results.Sum().wrong, 1);
  EXPECT_EQ(LoadExitCode(results), 3);
}

// Nor does it wait for calls that are unanswered.
TEST(LoadEngineTest, ACheckThatCannotBeMadeEndsTheRun) {
  LoadEngine::Options options = Even();
  options.duration = absl::Hours(1);
  options.deadline = absl::Hours(1);
  FakeTarget target(options, FakeTarget::Way::kHold);
  target.answer = [](uint64_t) {
    LoadAnswer answer;
    answer.cannot_check = absl::DataLossError("truncated");
    return answer;
  };
  LoadEngine engine(options, &target);
  const LoadResults results = engine.Run(Hooks([&] {
    target.Release();
    return false;
  }));
  EXPECT_EQ(results.error, absl::DataLossError("truncated"));
  target.Release();  // what the engine's end waits for
}

TEST(LoadEngineTest, TheUserMayEndIt) {
  LoadEngine::Options options = Even();
  options.duration = absl::Hours(1);
  FakeTarget target(options, FakeTarget::Way::kAtOnce);
  LoadEngine engine(options, &target);
  const absl::Time begin = SteadyNow();
  const LoadResults results = engine.Run(
      Hooks([&] { return SteadyNow() - begin > absl::Seconds(0.1); }));
  EXPECT_TRUE(results.interrupted);
  EXPECT_LT(results.measured_seconds, 60);
  EXPECT_EQ(results.unfinished, 0);
  EXPECT_EQ(LoadExitCode(results), 0);
}

}  // namespace
}  // namespace engram::ctl
