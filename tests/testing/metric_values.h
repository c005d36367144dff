#ifndef ENGRAM_TESTS_TESTING_METRIC_VALUES_H_
#define ENGRAM_TESTS_TESTING_METRIC_VALUES_H_

#include <prometheus/registry.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace engram::test {

// Counters and gauges as "name{label=value,...}", each label with a comma.
inline std::map<std::string, double> MetricValues(
    const prometheus::Registry& registry) {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : registry.Collect()) {
    for (const prometheus::ClientMetric& metric : family.metric) {
      std::string name = absl::StrCat(family.name, "{");
      for (const auto& label : metric.label) {
        absl::StrAppend(&name, label.name, "=", label.value, ",");
      }
      values[absl::StrCat(name, "}")] =
          family.type == prometheus::MetricType::Counter ? metric.counter.value
                                                         : metric.gauge.value;
    }
  }
  return values;
}

}  // namespace engram::test

#endif  // ENGRAM_TESTS_TESTING_METRIC_VALUES_H_
