#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_UNRELIABLE_SOURCE_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_UNRELIABLE_SOURCE_H_

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/membership/member.h"
#include "tests/unit/table_server/rebalance/simulated_time.h"
#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram::test {

// A member source that does not tell every server the same at once.
class UnreliableSource {
 public:
  using Names = std::vector<std::string>;

  explicit UnreliableSource(Random& random) : random_(random) {}

  void Set(Names names, absl::Time now) {
    std::sort(names.begin(), names.end());
    history_.emplace_back(now, std::move(names));
  }
  const Names& names() const { return history_.back().second; }

  // From now on a server hears the truth so much later.
  void Delay(const std::string& server, absl::Duration by) {
    moods_[server].delay = by;
  }
  void Confuse(const std::string& server) {
    constexpr Kind kKinds[] = {kTrue, kFails, kEmpty, kHalf, kFlaps};
    moods_[server].kind = kKinds[random_.Below(5)];
  }
  void Calm() { moods_.clear(); }

  absl::StatusOr<std::vector<Member>> Answer(const std::string& server,
                                             absl::Time now) {
    const Mood mood = moods_[server];
    const Names& names = At(now - mood.delay);
    switch (mood.kind) {
      case kTrue:
        break;
      case kFails:
        return absl::UnavailableError("no answer");
      case kEmpty:
        return std::vector<Member>();
      case kHalf: {
        Names half;
        for (const std::string& name : names) {
          if (random_.Chance(0.5)) half.push_back(name);
        }
        return Members(half);
      }
      case kFlaps:
        if (history_.size() > 1 && random_.Chance(0.5)) {
          return Members(history_[history_.size() - 2].second);
        }
        break;
    }
    return Members(names);
  }

 private:
  enum Kind { kTrue, kFails, kEmpty, kHalf, kFlaps };
  struct Mood {
    Kind kind = kTrue;
    absl::Duration delay;
  };

  const Names& At(absl::Time time) const {
    size_t i = history_.size() - 1;
    while (i > 0 && history_[i].first > time) --i;
    return history_[i].second;
  }

  Random& random_;
  std::vector<std::pair<absl::Time, Names>> history_;
  std::map<std::string, Mood> moods_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_UNRELIABLE_SOURCE_H_
