#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_MEMBERSHIP_MEMBER_TRACKER_FIXTURE_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_MEMBERSHIP_MEMBER_TRACKER_FIXTURE_H_

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "table_server/membership/member_tracker.h"

namespace engram {

inline constexpr absl::Duration kSecond = absl::Seconds(1);
inline constexpr absl::Duration kWindow = absl::Seconds(5);
inline constexpr absl::Duration kDeath = absl::Seconds(60);
inline constexpr uint64_t kSelfInstance = 1000;

// "t0" is this server. Members are written "t0 t1 t2".
class MemberTrackerTest : public ::testing::Test {
 protected:
  static MemberTracker::Options OptionsOfList() {
    return {.self = "t0",
            .self_instance_id = kSelfInstance,
            .stability_window = kWindow,
            .death_delay = kDeath,
            .absence_is_departure = true};
  }
  static MemberTracker::Options OptionsOfDns() {
    MemberTracker::Options options = OptionsOfList();
    options.absence_is_departure = false;
    return options;
  }

  void Start(MemberTracker::Options options) {
    tracker_.emplace(std::move(options));
  }
  static std::vector<Member> Members(absl::string_view names) {
    std::vector<Member> members;
    for (const absl::string_view name :
         absl::StrSplit(names, ' ', absl::SkipEmpty())) {
      members.push_back({std::string(name), absl::StrCat(name, ":1")});
    }
    return members;
  }
  void Name(absl::string_view names) {
    tracker_->Observe(Members(names), now_);
  }
  void Fail() { tracker_->Observe(absl::UnavailableError("SERVFAIL"), now_); }
  // Peers have a view when this server has.
  void Hear(absl::string_view name, uint64_t instance_id = 1) {
    tracker_->HeardFrom(name, instance_id, tracker_->has_view(), now_);
  }
  bool After(absl::Duration time) {
    now_ += time;
    return tracker_->Update(now_);
  }
  static std::string Join(const std::vector<Member>& members) {
    return absl::StrJoin(members, " ", [](std::string* out, const Member& m) {
      absl::StrAppend(out, m.name);
    });
  }
  std::string View() const { return Join(tracker_->view()); }
  std::string Peers() const { return Join(tracker_->Peers()); }
  // A view of `names`, everybody just heard.
  void Form(absl::string_view names) {
    Name(names);
    After(absl::ZeroDuration());
    After(kWindow);
    ASSERT_EQ(View(), names);
    HearAll();
  }
  void HearAll() {
    for (const Member& peer : tracker_->Peers()) Hear(peer.name);
  }
  // Seconds of which in each the source names these and all peers answer.
  void Pass(absl::Duration time, absl::string_view names) {
    for (absl::Time end = now_ + time; now_ < end;) {
      now_ += kSecond;
      Name(names);
      HearAll();
      tracker_->Update(now_);
    }
  }

  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  std::optional<MemberTracker> tracker_{OptionsOfList()};
};

}  // namespace engram

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_MEMBERSHIP_MEMBER_TRACKER_FIXTURE_H_
