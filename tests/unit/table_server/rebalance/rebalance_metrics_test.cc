#include "table_server/rebalance/rebalance_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace engram {
namespace {

using ::testing::Contains;
using ::testing::Pair;
using ::testing::SizeIs;

// Of metrics without labels, by what follows "engram_table_".
std::map<std::string, double> ValuesOf(const prometheus::Registry& registry) {
  const std::string prefix = "engram_table_";
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : registry.Collect()) {
    EXPECT_EQ(family.name.substr(0, prefix.size()), prefix);
    EXPECT_FALSE(family.help.empty());
    EXPECT_THAT(family.metric, SizeIs(1));
    const prometheus::ClientMetric& metric = family.metric.front();
    values[family.name.substr(prefix.size())] =
        family.type == prometheus::MetricType::Counter ? metric.counter.value
                                                       : metric.gauge.value;
  }
  return values;
}

TEST(RebalanceMetricsTest, AllAreThereFromTheStart) {
  const auto registry = std::make_shared<prometheus::Registry>();
  const RebalanceMetrics metrics(registry);
  const auto values = ValuesOf(*registry);
  EXPECT_THAT(values, SizeIs(10));
  for (const auto& [name, value] : values) EXPECT_EQ(value, 0) << name;
}

TEST(RebalanceMetricsTest, ShowWhatWasSetLast) {
  const auto registry = std::make_shared<prometheus::Registry>();
  RebalanceMetrics metrics(registry);
  metrics.ViewChanged();
  metrics.ViewChanged();
  metrics.Set({.members = 9, .leaving = true});
  metrics.Set({.members = 3,
               .members_heard = 2,
               .views_that_differ = 1,
               .counts = {.to_load = 4,
                          .to_free = 5,
                          .lingering = 6,
                          .failed_loads = 7},
               .loaded_bytes = 1000});
  const auto values = ValuesOf(*registry);
  EXPECT_THAT(values, Contains(Pair("members", 3)));
  EXPECT_THAT(values, Contains(Pair("members_heard", 2)));
  EXPECT_THAT(values, Contains(Pair("views_that_differ", 1)));
  EXPECT_THAT(values, Contains(Pair("partitions_to_load", 4)));
  EXPECT_THAT(values, Contains(Pair("partitions_to_free", 5)));
  EXPECT_THAT(values, Contains(Pair("partitions_lingering", 6)));
  EXPECT_THAT(values, Contains(Pair("failed_loads", 7)));
  EXPECT_THAT(values, Contains(Pair("read_bytes", 1000)));
  EXPECT_THAT(values, Contains(Pair("leaving", 0)));
  EXPECT_THAT(values, Contains(Pair("view_changes_total", 2)));
}

}  // namespace
}  // namespace engram
