#ifndef ENGRAM_TABLE_SERVER_REBALANCE_REBALANCE_METRICS_H_
#define ENGRAM_TABLE_SERVER_REBALANCE_REBALANCE_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <memory>

#include "table_server/rebalance/hand_over.h"

namespace engram {

// The engram_table_* metrics about members and moves, all there from the start.
// Thread safety: all methods may be called concurrently.
class RebalanceMetrics {
 public:
  struct State {
    uint64_t members = 0;        // of the view
    uint64_t members_heard = 0;  // with this server
    uint64_t views_that_differ = 0;
    HandOver::Counts counts;
    uint64_t loaded_bytes = 0;  // since the start
    bool leaving = false;
  };

  explicit RebalanceMetrics(std::shared_ptr<prometheus::Registry> registry);

  void Set(const State& state);
  void ViewChanged() { view_changes_->Increment(); }

 private:
  const std::shared_ptr<prometheus::Registry> registry_;  // owns what follows
  prometheus::Gauge* members_;
  prometheus::Gauge* members_heard_;
  prometheus::Gauge* views_that_differ_;
  prometheus::Gauge* to_load_;
  prometheus::Gauge* to_free_;
  prometheus::Gauge* lingering_;
  prometheus::Gauge* moved_bytes_;
  prometheus::Gauge* failed_loads_;
  prometheus::Gauge* leaving_;
  prometheus::Counter* view_changes_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_REBALANCE_REBALANCE_METRICS_H_
