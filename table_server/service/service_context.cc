#include "table_server/service/service_context.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"

namespace engram {

absl::Status ServiceContext::DrainingError() const {
  return MakeError(ErrorReason::kDraining,
                   absl::StrCat("server ", server_name,
                                " is about to leave and takes no new calls"),
                   {{"server", server_name}});
}

absl::Status ServiceContext::Schedule(QueueLoop& loop,
                                      absl::AnyInvocable<void()> step,
                                      ThreadPool::Urgency urgency) {
  const bool added = workers.has_value()
                         ? workers->TryAdd(std::move(step), urgency)
                         : loop.Defer(std::move(step));
  if (added) return absl::OkStatus();
  if (!accepting.load()) return DrainingError();
  return WithRetryAfter(
      MakeError(ErrorReason::kOverloaded, "the queue of gathers is full"),
      limits.retry_after);
}

absl::StatusOr<Admission::Ticket> ServiceContext::Admit(
    const v1::GatherRequest& request, uint64_t reply_bytes, uint64_t held_bytes,
    absl::Time deadline) {
  if (!accepting.load()) return DrainingError();
  ENGRAM_RETURN_IF_ERROR(CheckLayerCount(request.layers_size()));
  return admission.Enter(request.SpaceUsedLong() + held_bytes, reply_bytes,
                         deadline - clock.Now());
}

uint64_t RowCountOf(const v1::GatherRequest& request) {
  uint64_t rows = 0;
  for (const v1::LayerRows& layer : request.layers()) {
    rows += layer.row_ids_size();
  }
  return rows;
}

}  // namespace engram
