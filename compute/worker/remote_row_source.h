#ifndef ENGRAM_COMPUTE_WORKER_REMOTE_ROW_SOURCE_H_
#define ENGRAM_COMPUTE_WORKER_REMOTE_ROW_SOURCE_H_

#include <memory>
#include <string>

#include "compute/block/row_source.h"
#include "compute/worker/metrics.h"
#include "engram_client/table_client.h"

namespace engram {

// Rows from table servers. Both arguments outlive the source; `metrics` may be
// null.
class RemoteRowSource final : public RowSource {
 public:
  RemoteRowSource(TableClient* client, WorkerMetrics* metrics)
      : client_(client), metrics_(metrics) {}

  std::unique_ptr<RowFetch> Fetch(
      LayerId layer, absl::Span<const RowId> row_ids, absl::Span<std::byte> out,
      absl::Time deadline,
      absl::AnyInvocable<void(absl::Status)> done) override;

  const RowFormat& row_format() const override {
    return client_->table().row_format;
  }
  const std::string& version() const override {
    return client_->table().version;
  }

 private:
  TableClient* const client_;
  WorkerMetrics* const metrics_;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_REMOTE_ROW_SOURCE_H_
