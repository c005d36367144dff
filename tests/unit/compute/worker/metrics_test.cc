#include "compute/worker/metrics.h"

#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <map>
#include <string>

#include "tests/testing/metric_values.h"

namespace engram {
namespace {

class WorkerMetricsTest : public ::testing::Test {
 protected:
  std::map<std::string, double> Values() const {
    return test::MetricValues(registry_);
  }

  prometheus::Registry registry_;
  WorkerMetrics metrics_{registry_};
};

TEST_F(WorkerMetricsTest, TellsTheDevice) {
  metrics_.SetDevice("cuda:1", "H200", "fast");
  EXPECT_EQ(Values().at("engram_compute_device_info"
                        "{device=cuda:1,name=H200,projection=fast,}"),
            1);
}

TEST_F(WorkerMetricsTest, TellsTheBlocksBoundsAndTheirUse) {
  BlockUse use = {
      .rows = {.limit_bytes = 1000, .used_bytes = 10, .fallbacks = 3},
      .slots_limit = 4,
      .slots_in_use = 2};
  metrics_.SetBlockUse(use);
  use.rows.used_bytes = 20;
  use.rows.fallbacks = 5;
  metrics_.SetBlockUse(use);
  const std::map<std::string, double> values = Values();
  EXPECT_EQ(values.at("engram_compute_pinned_rows_bytes{}"), 20);
  EXPECT_EQ(values.at("engram_compute_pinned_rows_limit_bytes{}"), 1000);
  EXPECT_EQ(values.at("engram_compute_unpinned_rows_total{}"), 5);
  EXPECT_EQ(values.at("engram_compute_device_slots_in_use{}"), 2);
  EXPECT_EQ(values.at("engram_compute_device_slots_limit{}"), 4);
}

}  // namespace
}  // namespace engram
