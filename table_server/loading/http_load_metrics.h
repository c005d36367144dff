#ifndef ENGRAM_TABLE_SERVER_LOADING_HTTP_LOAD_METRICS_H_
#define ENGRAM_TABLE_SERVER_LOADING_HTTP_LOAD_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <array>
#include <memory>

#include "core/base/mutex.h"
#include "core/http/http_counts.h"

namespace engram {

// The engram_table_http_* metrics: what loading over HTTP asked for and got,
// all there from the start. Thread safety: all methods may be called
// concurrently.
class HttpLoadMetrics {
 public:
  explicit HttpLoadMetrics(std::shared_ptr<prometheus::Registry> registry);

  // Before each scrape. Counts that are below those of an earlier call are
  // taken as those.
  void Update(const HttpCounts& counts);

 private:
  const std::shared_ptr<prometheus::Registry> registry_;  // owns what follows
  prometheus::Counter* requests_;
  prometheus::Counter* received_bytes_;
  prometheus::Counter* retries_;
  std::array<prometheus::Counter*, kHttpFailureCount> failures_;
  Mutex mutex_;
  HttpCounts shown_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_HTTP_LOAD_METRICS_H_
