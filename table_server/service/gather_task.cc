#include "table_server/service/gather_task.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"

namespace engram {
namespace {

// They stay part of the request.
std::vector<LayerRowIds> RowIdsOf(const v1::GatherRequest& request) {
  std::vector<LayerRowIds> layers;
  layers.reserve(request.layers_size());
  for (const v1::LayerRows& layer : request.layers()) {
    layers.push_back(
        {LayerId{layer.layer_id()},
         absl::MakeConstSpan(layer.row_ids().data(), layer.row_ids().size())});
  }
  return layers;
}

// The rows are still to be added.
GatherCrc StartCrc(const std::string& version,
                   const std::vector<LayerRowIds>& layers) {
  GatherCrc crc(version);
  for (const LayerRowIds& layer : layers) {
    crc.AddLayer(layer.layer, layer.row_ids);
  }
  return crc;
}

}  // namespace

GatherTask::GatherTask(ServiceContext& service, TableMethod method,
                       v1::GatherRequest request, Admission::Ticket ticket,
                       absl::Time deadline)
    : service_(service),
      method_(method),
      request_(std::move(request)),
      layers_(RowIdsOf(request_)),
      row_count_(RowCountOf(request_)),
      small_(row_count_ * service.gatherer.row_bytes() <=
             service.limits.small_bytes),
      ticket_(std::move(ticket)),
      arrived_(service.clock.Now()),
      deadline_(deadline) {}

absl::StatusOr<std::optional<GatherTask::Piece>> GatherTask::Next() {
  absl::StatusOr<std::optional<Piece>> piece =
      incomplete_.has_value() ? FetchedPiece() : GatherPiece();
  // Its lease must not wait for a caller that is slow to take the answer.
  if (!piece.ok() || (piece->has_value() && (*piece)->last)) gather_.reset();
  return piece;
}

absl::StatusOr<std::optional<GatherTask::Piece>> GatherTask::GatherPiece() {
  ENGRAM_RETURN_IF_ERROR(CheckOnce());
  const size_t row_bytes = service_.gatherer.row_bytes();
  const uint64_t rows = std::min(service_.buffers.max_rows_bytes() / row_bytes,
                                 row_count_ - next_row_);
  ReplyBuffer buffer = service_.buffers.Take(rows * row_bytes);
  ENGRAM_RETURN_IF_ERROR(service_.gatherer.Copy(
      *gather_, next_row_, buffer.rows(), Guard(), missed_));
  if (missed_.empty()) return End(std::move(buffer));
  incomplete_ = std::move(buffer);
  return std::nullopt;
}

void GatherTask::FetchRows(absl::AnyInvocable<void()> done) {
  service_.gathers_waiting.fetch_add(1);
  service_.admission.Paused(ticket_);
  service_.gatherer.Fetch(
      std::exchange(missed_, {}), deadline_,
      [this, begun = service_.clock.Now(),
       done = std::move(done)](absl::Status status) mutable {
        fetched_ = std::move(status);
        waited_ += service_.clock.Now() - begun;
        service_.admission.Resumed(ticket_);
        service_.gathers_waiting.fetch_sub(1);
        // The task may be gone once it is told.
        absl::AnyInvocable<void()> tell = std::move(done);
        tell();
      });
}

absl::StatusOr<std::optional<GatherTask::Piece>> GatherTask::FetchedPiece() {
  ReplyBuffer buffer = *std::exchange(incomplete_, std::nullopt);
  ENGRAM_RETURN_IF_ERROR(fetched_);
  ENGRAM_RETURN_IF_ERROR(CheckAwaited());
  return End(std::move(buffer));
}

GatherTask::Piece GatherTask::End(ReplyBuffer buffer) {
  Piece piece{.buffer = std::move(buffer)};
  if (crc_.has_value()) crc_->AddRows(piece.buffer.rows());
  next_row_ += piece.buffer.rows().size() / service_.gatherer.row_bytes();
  piece.last = next_row_ == row_count_;
  return piece;
}

absl::Status GatherTask::CheckOnce() {
  if (gather_.has_value()) return absl::OkStatus();
  // Nothing is done for a call whose caller is gone, not even checks.
  ENGRAM_RETURN_IF_ERROR(CheckAwaited());
  ENGRAM_ASSIGN_OR_RETURN(gather_,
                          service_.gatherer.Check(request_.version(), layers_));
  if (request_.want_crc32c()) {
    crc_ = StartCrc(service_.manifest.version(), layers_);
  }
  return absl::OkStatus();
}

ReplyEnd GatherTask::end() const {
  ReplyEnd end{.version = service_.manifest.version(), .crc32c = std::nullopt};
  if (crc_.has_value()) end.crc32c = crc_->value();
  return end;
}

void GatherTask::Record(absl::StatusCode code) const {
  const bool done = code == absl::StatusCode::kOk;
  const absl::Duration time = service_.clock.Now() - arrived_;
  // How long a disk takes says nothing about the threads.
  if (done) service_.admission.Took(ticket_, time - waited_);
  const uint64_t rows = done ? next_row_ : 0;
  service_.metrics.GatherEnded(method_, code, time, rows,
                               rows * service_.gatherer.row_bytes());
}

}  // namespace engram
