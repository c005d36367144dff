#include "table_server/rebalance/rebalance_metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/rpc/metric_families.h"

namespace engram {

RebalanceMetrics::RebalanceMetrics(
    std::shared_ptr<prometheus::Registry> registry)
    : registry_(std::move(registry)) {
  const auto add = [&](const char* name, const char* help) {
    return &AddGauge(*registry_, absl::StrCat("engram_table_", name), help);
  };
  members_ = add("members", "Servers that own partitions by this one's view.");
  members_heard_ = add("members_heard", "Those that have answered lately.");
  views_that_differ_ =
      add("views_that_differ",
          "Servers that see other members: nothing is given up to them.");
  to_load_ = add("partitions_to_load", "Owned and not held yet.");
  to_free_ = add("partitions_to_free",
                 "Held, not owned, not yet acknowledged by their owners.");
  lingering_ = add("partitions_lingering",
                   "Handed over to their owners and still in memory.");
  moved_bytes_ = add("read_bytes", "Bytes read by loads since the start.");
  failed_loads_ = add("failed_loads", "Loads that failed since the start.");
  leaving_ = add("leaving", "1 when the server leaves the cluster for good.");
  view_changes_ = &AddCounter(*registry_, "engram_table_view_changes_total",
                              "How often the members have changed.");
}

void RebalanceMetrics::Set(const State& state) {
  const auto set = [](prometheus::Gauge* gauge, uint64_t value) {
    gauge->Set(static_cast<double>(value));
  };
  set(members_, state.members);
  set(members_heard_, state.members_heard);
  set(views_that_differ_, state.views_that_differ);
  set(to_load_, state.counts.to_load);
  set(to_free_, state.counts.to_free);
  set(lingering_, state.counts.lingering);
  set(moved_bytes_, state.loaded_bytes);
  set(failed_loads_, state.counts.failed_loads);
  set(leaving_, state.leaving ? 1 : 0);
}

}  // namespace engram
