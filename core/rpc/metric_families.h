#ifndef ENGRAM_CORE_RPC_METRIC_FAMILIES_H_
#define ENGRAM_CORE_RPC_METRIC_FAMILIES_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <memory>
#include <string>

namespace engram {

// A metric without labels. It lives as long as the registry.
prometheus::Counter& AddCounter(prometheus::Registry& registry,
                                const std::string& name,
                                const std::string& help);
prometheus::Gauge& AddGauge(prometheus::Registry& registry,
                            const std::string& name, const std::string& help);

// `first` and on, each bucket twice the one before, below `limit`.
prometheus::Histogram::BucketBoundaries DoublingBuckets(double first,
                                                        double limit);

// What a counter that counts single events has counted.
uint64_t CountOf(const prometheus::Counter& counter);

// `registry`, or a new one where there is none: metrics that only their owner
// reads.
std::shared_ptr<prometheus::Registry> OrOwnRegistry(
    std::shared_ptr<prometheus::Registry> registry);

}  // namespace engram

#endif  // ENGRAM_CORE_RPC_METRIC_FAMILIES_H_
