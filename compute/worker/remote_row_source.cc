#include "compute/worker/remote_row_source.h"

#include <utility>

namespace engram {
namespace {

class RemoteFetch final : public RowFetch {
 public:
  RemoteFetch(std::unique_ptr<GatherHandle> handle, WorkerMetrics* metrics)
      : handle_(std::move(handle)), metrics_(metrics) {}

  // The handle cancels what goes on and waits until nothing is written.
  ~RemoteFetch() override {
    if (metrics_ == nullptr || !handle_->done()) return;
    const GatherStats stats = handle_->stats();
    metrics_->RowsFetched(stats.rows, stats.unique_rows, stats.bytes_received);
  }

  void Cancel() override { handle_->Cancel(); }

 private:
  const std::unique_ptr<GatherHandle> handle_;
  WorkerMetrics* const metrics_;
};

}  // namespace

std::unique_ptr<RowFetch> RemoteRowSource::Fetch(
    LayerId layer, absl::Span<const RowId> row_ids, absl::Span<std::byte> out,
    absl::Time deadline, absl::AnyInvocable<void(absl::Status)> done) {
  return std::make_unique<RemoteFetch>(
      client_->Prefetch(
          {{.layer = layer, .row_ids = row_ids, .out = out}}, deadline,
          [done = std::move(done)](const absl::Status& status) mutable {
            done(status);
          }),
      metrics_);
}

}  // namespace engram
