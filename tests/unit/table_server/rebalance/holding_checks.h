#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_HOLDING_CHECKS_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_HOLDING_CHECKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace engram::test {

// Who announces what in a cluster, and whether somebody always does: checked at
// every event that could break it.
//
// Every withdrawal leaves as many holders as the partition has owners in some
// view; a server that is lost takes one.
class HoldingChecks {
 public:
  HoldingChecks(size_t partitions, uint32_t replicas)
      : replicas_(replicas), fewest_owners_(replicas), holders_(partitions) {}

  // From now on partitions may be without a holder.
  void AllowLosses() { losses_allowed_ = true; }

  void Note(absl::Time at, const std::string& server, std::string what) {
    history_.push_back({at, server, std::move(what), std::nullopt});
  }
  void ViewAdopted(size_t members) {
    fewest_owners_ = std::min(fewest_owners_, static_cast<uint32_t>(members));
  }
  void Announced(absl::Time at, const std::string& server, size_t partition) {
    history_.push_back({at, server, "announces", partition});
    std::vector<bool>& announced = AnnouncedBy(server);
    if (announced[partition]) Break(at, "announced twice", partition);
    announced[partition] = true;
    ++holders_[partition];
  }
  void Withdrawn(absl::Time at, const std::string& server, size_t partition) {
    history_.push_back({at, server, "withdraws", partition});
    std::vector<bool>& announced = AnnouncedBy(server);
    if (!announced[partition]) Break(at, "withdrawn twice", partition);
    announced[partition] = false;
    --holders_[partition];
    CheckHolders(at, partition);
  }
  void Lost(absl::Time at, const std::string& server) {
    Note(at, server, "ends");
    ++lost_;
    const std::vector<bool> announced = AnnouncedBy(server);
    announced_by_.erase(server);
    for (size_t i = 0; i < holders_.size(); ++i) {
      if (!announced[i]) continue;
      --holders_[i];
      CheckHolders(at, i);
    }
  }
  // Everything is as it should be: what is lost from now on counts anew.
  void Settled() {
    lost_ = 0;
    fewest_owners_ = replicas_;
  }
  void Break(absl::Time at, const std::string& what,
             std::optional<size_t> partition = std::nullopt) {
    if (!broken_.empty()) return;
    broken_ = absl::StrCat(what, " at ", Seconds(at), "\n");
    for (const Event& event : history_) {
      if (event.partition.has_value() && event.partition != partition) continue;
      absl::StrAppend(&broken_, Seconds(event.at), " ", event.server, " ",
                      event.what, "\n");
    }
  }

  // By number of the partition.
  std::vector<bool>& AnnouncedBy(const std::string& server) {
    std::vector<bool>& announced = announced_by_[server];
    announced.resize(holders_.size());
    return announced;
  }
  // Whether `server` can crash: others announce all that it does, and none of
  // them gives anything up for the sake of it alone.
  bool CanLose(const std::string& server) {
    if (losses_allowed_) return true;
    if (fewest_owners_ < 2) return false;
    const std::vector<bool>& announced = AnnouncedBy(server);
    for (size_t i = 0; i < holders_.size(); ++i) {
      if (announced[i] && holders_[i] < 2) return false;
    }
    return true;
  }
  // What did not hold, and how it came to that; empty: all does.
  const std::string& broken() const { return broken_; }

 private:
  struct Event {
    absl::Time at;
    std::string server;
    std::string what;
    std::optional<size_t> partition;
  };

  static std::string Seconds(absl::Time at) {
    return absl::FormatDuration(
        absl::Trunc(at - absl::UnixEpoch(), absl::Milliseconds(1)));
  }
  void CheckHolders(absl::Time at, size_t partition) {
    const uint32_t wanted = fewest_owners_ > lost_ ? fewest_owners_ - lost_ : 1;
    if (holders_[partition] >= wanted || losses_allowed_) return;
    Break(at,
          absl::StrCat("partition ", partition, " has ", holders_[partition],
                       " holders instead of ", wanted),
          partition);
  }

  const uint32_t replicas_;
  bool losses_allowed_ = false;
  // Since all was settled: of any view the fewest owners, and servers lost.
  uint32_t fewest_owners_;
  uint32_t lost_ = 0;
  std::vector<uint32_t> holders_;  // by number of the partition
  std::map<std::string, std::vector<bool>> announced_by_;
  std::vector<Event> history_;
  std::string broken_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_HOLDING_CHECKS_H_
