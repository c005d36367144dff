#ifndef ENGRAM_CORE_RPC_METRIC_FAMILIES_H_
#define ENGRAM_CORE_RPC_METRIC_FAMILIES_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <string>

namespace engram {

// A metric without labels. It lives as long as the registry.
prometheus::Counter& AddCounter(prometheus::Registry& registry,
                                const std::string& name,
                                const std::string& help);
prometheus::Gauge& AddGauge(prometheus::Registry& registry,
                            const std::string& name, const std::string& help);

}  // namespace engram

#endif  // ENGRAM_CORE_RPC_METRIC_FAMILIES_H_
