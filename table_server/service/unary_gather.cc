#include "table_server/service/unary_gather.h"

#include <utility>

#include "absl/time/time.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"
#include "core/wire/piece_writer.h"
#include "table_server/service/messages.h"

namespace engram {

void UnaryGather::Await(const CallSource& source) {
  auto* const call = new UnaryGather(source);
  source.rpc->RequestGather(&call->context_, &call->request_, &call->writer_,
                            source.queue, source.queue, call->arrived_.tag());
}

UnaryGather::UnaryGather(const CallSource& source)
    : source_(source), service_(*source.service) {
  context_.AsyncNotifyWhenDone(call_ended_.tag());
}

void UnaryGather::OnArrived(bool ok) {
  if (!ok) {  // the server shuts down; no call has begun
    delete this;
    return;
  }
  Await(source_);
  const absl::Status status = Begin();
  if (!status.ok()) return Finish(status);
  Continue();
}

absl::Status UnaryGather::Begin() {
  v1::GatherRequest request;
  ENGRAM_RETURN_IF_ERROR(ParseMessage(request_, request));
  request_.Clear();
  const uint64_t rows = RowCountOf(request);
  const uint64_t reply_bytes = rows * service_.gatherer.row_bytes();
  // What is too large is for the gather to refuse; it holds no reply.
  const bool too_large = rows > service_.gatherer.max_rows();
  const absl::Time deadline = absl::FromChrono(context_.deadline());
  ENGRAM_ASSIGN_OR_RETURN(
      Admission::Ticket ticket,
      service_.Admit(request, reply_bytes, too_large ? 0 : reply_bytes,
                     deadline));
  task_.emplace(service_, TableMethod::kGather, std::move(request),
                std::move(ticket), deadline);
  return absl::OkStatus();
}

void UnaryGather::Continue() {
  if (task_->small() && service_.MayGatherHere(*source_.loop)) {
    return RunPiece();
  }
  const absl::Status status = service_.Schedule(
      *source_.loop, [this] { RunPiece(); },
      GatherTask::UrgencyOf(task_->small()));
  if (!status.ok()) Finish(status);
}

void UnaryGather::RunPiece() {
  if (cancelled_.load()) task_->Cancel();
  absl::StatusOr<std::optional<GatherTask::Piece>> next = task_->Next();
  if (!next.ok()) return Finish(next.status());
  if (!next->has_value()) return AwaitRows();
  GatherTask::Piece piece = **std::move(next);
  pieces_.push_back(std::move(piece.buffer));
  if (piece.last) return FinishWithRows();
  Continue();
}

// Goes on on a thread of the loop; on the tier's when the loop comes to its
// end.
void UnaryGather::AwaitRows() {
  task_->FetchRows([this] {
    auto run = [this] { RunPiece(); };
    const bool deferred = task_->small() ? source_.loop->DeferUrgent(run)
                                         : source_.loop->Defer(run);
    if (!deferred) RunPiece();
  });
}

void UnaryGather::FinishWithRows() {
  size_t rows_bytes = 0;
  for (ReplyBuffer& piece : pieces_) rows_bytes += piece.rows().size();
  const Framing framing = FrameResponse(
      rows_bytes, task_->end(), pieces_.front().head(), pieces_.back().tail());
  std::vector<grpc::Slice> slices;
  slices.reserve(pieces_.size());
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const bool last = i + 1 == pieces_.size();
    slices.push_back(std::move(pieces_[i])
                         .Release({.before = i == 0 ? framing.before : 0,
                                   .after = last ? framing.after : 0}));
  }
  pieces_.clear();
  writer_.Finish(grpc::ByteBuffer(slices.data(), slices.size()),
                 grpc::Status::OK, finished_.tag());
}

void UnaryGather::Finish(const absl::Status& status) {
  code_ = status.code();
  pieces_.clear();
  writer_.FinishWithError(ToGrpcStatus<grpc::Status>(status), finished_.tag());
}

void UnaryGather::OnFinished(bool) { EventEnded(); }

void UnaryGather::OnCallEnded(bool) {
  if (context_.IsCancelled()) cancelled_.store(true);
  EventEnded();
}

void UnaryGather::EventEnded() {
  if (events_left_.fetch_sub(1) > 1) return;
  if (task_.has_value()) {
    task_->Record(code_);
  } else {
    service_.metrics.CallEnded(TableMethod::kGather, code_);
  }
  delete this;
}

}  // namespace engram
