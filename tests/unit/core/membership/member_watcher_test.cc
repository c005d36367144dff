#include "core/membership/member_watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/notification.h"
#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::testing::ElementsAre;

// Fails every second time.
class OddSource final : public MemberSource {
 public:
  absl::StatusOr<std::vector<Member>> Read(absl::Time deadline) override {
    last_patience_ = deadline - absl::Now();
    if (++reads_ % 2 == 0) return absl::UnavailableError("gone");
    return std::vector<Member>{{"a", "h:1"}};
  }
  bool absence_is_departure() const override { return true; }

  // Of the watcher's thread, which `on_read` is told on too.
  int reads_ = 0;
  absl::Duration last_patience_;
};

TEST(MemberWatcherTest, TellsOfEveryLook) {
  const auto source = std::make_shared<OddSource>();
  std::vector<absl::StatusCode> seen;
  Notification enough;
  {
    MemberWatcher watcher(
        source, {absl::Milliseconds(1), absl::Seconds(7)},
        [&](const MemberWatcher::Observation& observation) {
          if (seen.size() == 4) return;
          seen.push_back(observation.status().code());
          EXPECT_GT(source->last_patience_, absl::ZeroDuration());
          EXPECT_LE(source->last_patience_, absl::Seconds(7));
          if (observation.ok()) {
            EXPECT_THAT(*observation, ElementsAre(Member{"a", "h:1"}));
          }
          if (seen.size() == 4) enough.Notify();
        });
    ASSERT_TRUE(enough.WaitUntil(absl::Now() + absl::Seconds(60)));
  }
  EXPECT_THAT(
      seen, ElementsAre(absl::StatusCode::kOk, absl::StatusCode::kUnavailable,
                        absl::StatusCode::kOk, absl::StatusCode::kUnavailable));
}

TEST(MemberWatcherTest, EndsWithoutWaitingForTheNextLook) {
  Notification looked;
  std::atomic<int> looks = 0;
  const absl::Time start = absl::Now();
  {
    MemberWatcher watcher(std::make_shared<OddSource>(),
                          {absl::Hours(1), absl::Seconds(1)},
                          [&](const MemberWatcher::Observation&) {
                            if (++looks == 1) looked.Notify();
                          });
    ASSERT_TRUE(looked.WaitUntil(absl::Now() + absl::Seconds(60)));
  }
  EXPECT_LT(absl::Now() - start, absl::Minutes(30));
  EXPECT_EQ(looks, 1);
}

// Blocks in Read until it may go on.
class BlockedSource final : public MemberSource {
 public:
  absl::StatusOr<std::vector<Member>> Read(absl::Time /*deadline*/) override {
    reading_.Notify();
    go_on_.WaitUntil(absl::Now() + absl::Seconds(60));
    ended_ = true;
    return absl::UnavailableError("gone");
  }
  bool absence_is_departure() const override { return true; }

  Notification reading_;
  Notification go_on_;
  std::atomic<bool> ended_ = false;
};

TEST(MemberWatcherTest, WaitsForTheLookUnderWay) {
  const auto source = std::make_shared<BlockedSource>();
  auto watcher = std::make_unique<MemberWatcher>(
      source, MemberWatcher::Options{absl::Hours(1), absl::Seconds(1)},
      [](const MemberWatcher::Observation&) {});
  ASSERT_TRUE(source->reading_.WaitUntil(absl::Now() + absl::Seconds(60)));
  std::thread ending([&] { watcher.reset(); });
  source->go_on_.Notify();
  ending.join();
  EXPECT_TRUE(source->ended_);
}

}  // namespace
}  // namespace engram
