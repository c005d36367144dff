#include "core/rpc/metric_families.h"

#include <utility>

namespace engram {

prometheus::Counter& AddCounter(prometheus::Registry& registry,
                                const std::string& name,
                                const std::string& help) {
  return prometheus::BuildCounter()
      .Name(name)
      .Help(help)
      .Register(registry)
      .Add({});
}

prometheus::Gauge& AddGauge(prometheus::Registry& registry,
                            const std::string& name, const std::string& help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(
      {});
}

prometheus::Histogram::BucketBoundaries DoublingBuckets(double first,
                                                        double limit) {
  prometheus::Histogram::BucketBoundaries bounds;
  for (double bound = first; bound < limit; bound *= 2) bounds.push_back(bound);
  return bounds;
}

uint64_t CountOf(const prometheus::Counter& counter) {
  return static_cast<uint64_t>(counter.Value());
}

std::shared_ptr<prometheus::Registry> OrOwnRegistry(
    std::shared_ptr<prometheus::Registry> registry) {
  return registry != nullptr ? std::move(registry)
                             : std::make_shared<prometheus::Registry>();
}

}  // namespace engram
