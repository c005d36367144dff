#include "engram_client/rpc/gather_call.h"

#include <cstring>

#include "core/base/check.h"
#include "engram_client/rpc/gather_cache.h"

namespace engram {

void GatherCall::SetRows(const GatherPlan& plan,
                         absl::Span<const absl::Span<std::byte>> outs,
                         size_t row_bytes, CallRows rows) {
  rows_.emplace(std::move(rows));
  scatter_.emplace(plan, *rows_, outs, row_bytes);
  ENGRAM_CHECK(!buffered() ||
               buffer_->bytes().size() == scatter_->size_bytes());
}

void GatherCall::Write(uint64_t offset_bytes,
                       absl::Span<const std::byte> bytes) {
  if (buffered()) return WriteToBuffer(offset_bytes, bytes);
  if (!host_->EnterBuffers()) return;
  if (gate_.Enter()) {
    scatter_->Write(offset_bytes, bytes);
    CountWritten(bytes.size());
    if (gate_.Leave()) host_->OnShut(*this);
  }
  host_->LeaveBuffers();
}

void GatherCall::WriteToBuffer(uint64_t offset_bytes,
                               absl::Span<const std::byte> bytes) {
  const absl::Span<std::byte> all = buffer_->bytes();
  ENGRAM_CHECK(bytes.size() <= all.size() &&
               offset_bytes <= all.size() - bytes.size());
  std::memcpy(all.data() + offset_bytes, bytes.data(), bytes.size());
  CountWritten(bytes.size());
}

void GatherCall::KeepRows(GatherCache& cache,
                          absl::Span<const LayerId> layer_ids) {
  if (buffered()) return cache.KeepPacked(layer_ids, *rows_, buffer_->bytes());
  if (!host_->EnterBuffers()) return;
  // Hedges write to the same slots once the call is shut.
  if (gate_.Enter()) {
    cache.Keep(layer_ids, *rows_, scatter_->outs());
    if (gate_.Leave()) host_->OnShut(*this);
  }
  host_->LeaveBuffers();
}

void GatherCall::PlaceRows() const { scatter_->Write(0, buffer_->bytes()); }

}  // namespace engram
