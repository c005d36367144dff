#include "table_server/service/fetch_stream.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"

namespace engram {

void FetchStream::Await(const CallSource& source) {
  std::shared_ptr<FetchStream> stream(new FetchStream(source));
  source.rpc->RequestFetchPartition(stream->context(), stream->request(),
                                    stream->writer(), source.queue,
                                    source.queue, stream->Arm(stream));
}

FetchStream::FetchStream(const CallSource& source)
    : WriteStream(*source.loop),
      source_(source),
      service_(*source.service),
      stall_(service_.clock.Now()) {}

void FetchStream::Begin() {
  Await(source_);
  stall_.Moved(service_.clock.Now());
  const absl::Status status = Admit();
  if (!status.ok()) return EndWith(status);
  if (range_.size() == 0) return EndWith(absl::OkStatus());
  ScheduleCopy();
}

absl::Status FetchStream::Admit() {
  if (!service_.fetches.Add(shared_from_this())) {
    return WithRetryAfter(
        MakeError(ErrorReason::kOverloaded,
                  absl::StrCat("the limit of ", service_.fetches.limit(),
                               " fetches is reached")),
        service_.limits.retry_fetch_after);
  }
  // After Add: a drain that began meanwhile stops what it finds there.
  if (!service_.accepting.load()) return service_.DrainingError();
  const PartitionRef ref{LayerId{request()->layer_id()},
                         PartitionId{request()->partition()}};
  ENGRAM_ASSIGN_OR_RETURN(
      range_, service_.partition_reader.Check(request()->version(), ref,
                                              request()->offset_bytes()));
  return absl::OkStatus();
}

void FetchStream::Stop() { EndWith(service_.DrainingError()); }

void FetchStream::Expire() {
  if (ended_.load()) return;
  if (stall_.IsStalled(service_.clock.Now(), service_.limits.stall)) {
    context()->TryCancel();
  }
}

void FetchStream::ScheduleCopy() {
  const absl::Status status = service_.Schedule(
      *source_.loop, [self = shared_from_this()] { self->CopyPiece(); });
  if (!status.ok()) EndWith(status);
}

void FetchStream::CopyPiece() {
  if (ended_.load()) return;
  const size_t row_bytes = service_.partition_reader.row_bytes();
  const uint64_t rows = std::min<uint64_t>(
      range_.size(),
      std::max<uint64_t>(1, service_.limits.fetch_piece_bytes / row_bytes));
  rows_.resize(rows * row_bytes);
  absl::StatusOr<MissedRange> missed = service_.partition_reader.Copy(
      range_,
      absl::MakeSpan(reinterpret_cast<std::byte*>(rows_.data()), rows_.size()));
  if (!missed.ok()) return EndWith(missed.status());
  if (missed->empty()) return PieceIsThere(absl::OkStatus());
  uses_of_place_.fetch_add(1);
  // From here on the end of the call leaves the place to the fetch.
  if (ended_.load()) return LeavePlace();
  service_.partition_reader.Fetch(
      *std::move(missed), absl::FromChrono(context()->deadline()),
      [self = shared_from_this()](absl::Status status) mutable {
        OnRows(std::move(self), std::move(status));
      });
}

// Goes on on a thread of the loop; on the tier's when the loop comes to its
// end. The stream may have ended: until then it is there for its memory.
void FetchStream::OnRows(std::shared_ptr<FetchStream> self,
                         absl::Status status) {
  FetchStream* const stream = self.get();
  stream->fetched_ = std::move(status);
  stream->self_while_fetching_ = std::move(self);
  const auto go_on = [stream] {
    const auto keep = std::move(stream->self_while_fetching_);
    keep->LeavePlace();
    keep->PieceIsThere(keep->fetched_);
  };
  if (!stream->source_.loop->Defer(go_on)) go_on();
}

void FetchStream::PieceIsThere(const absl::Status& status) {
  if (ended_.load()) return;
  if (!status.ok()) return EndWith(status);
  const bool last = range_.size() == 0;
  copied_.store(true);
  if (last) return EndWith(absl::OkStatus());
  Advance();
}

bool FetchStream::MakeMessage(v1::FetchPartitionResponse& message) {
  if (!copied_.load()) return false;
  message.mutable_rows()->swap(rows_);
  copied_.store(false);
  return true;
}

void FetchStream::BeforeWrite(const v1::FetchPartitionResponse& message) {
  stall_.Moved(service_.clock.Now());
  service_.metrics.Fetched(message.rows().size());
  if (range_.size() > 0) ScheduleCopy();
}

// A piece that is there goes first: it may be the last of a fetch that has
// ended well.
void FetchStream::EndWith(const absl::Status& status) {
  End(ToGrpcStatus<grpc::Status>(status), /*tell_first=*/true);
}

void FetchStream::LeavePlace() {
  if (uses_of_place_.fetch_sub(1) == 1) service_.fetches.Remove(this);
}

void FetchStream::OnEnded(const grpc::Status& status) {
  ended_.store(true);
  LeavePlace();
  service_.metrics.CallEnded(TableMethod::kFetchPartition,
                             FromGrpcStatus(status).code());
}

}  // namespace engram
