#include "table_server/loading/http_load_metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/rpc/metric_families.h"

namespace engram {

HttpLoadMetrics::HttpLoadMetrics(std::shared_ptr<prometheus::Registry> registry)
    : registry_(std::move(registry)) {
  const auto add = [&](const char* name, const char* help) {
    return &AddCounter(*registry_, absl::StrCat("engram_table_http_", name),
                       help);
  };
  requests_ = add("requests_total", "HTTP requests for parts of checkpoints.");
  received_bytes_ = add("received_bytes_total", "Bytes that came for them.");
  retries_ = add("retries_total",
                 "Requests that took up what another had left unfinished.");
  auto& failures =
      prometheus::BuildCounter()
          .Name("engram_table_http_failures_total")
          .Help("Requests that brought less than they asked for, by reason.")
          .Register(*registry_);
  for (size_t i = 0; i < kHttpFailureCount; ++i) {
    failures_[i] = &failures.Add({{"reason", kHttpFailureNames[i]}});
  }
}

void HttpLoadMetrics::Update(const HttpCounts& counts) {
  MutexLock lock(&mutex_);
  const auto raise = [](prometheus::Counter* counter, uint64_t& shown,
                        uint64_t now) {
    if (now <= shown) return;
    counter->Increment(static_cast<double>(now - shown));
    shown = now;
  };
  raise(requests_, shown_.requests, counts.requests);
  raise(received_bytes_, shown_.received_bytes, counts.received_bytes);
  raise(retries_, shown_.retries, counts.retries);
  for (size_t i = 0; i < kHttpFailureCount; ++i) {
    raise(failures_[i], shown_.failures[i], counts.failures[i]);
  }
}

}  // namespace engram
