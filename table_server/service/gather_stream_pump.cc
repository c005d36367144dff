#include <algorithm>
#include <utility>
#include <vector>

#include "core/wire/piece_writer.h"
#include "table_server/service/gather_stream.h"
#include "table_server/service/messages.h"

// How the gathers of a stream take turns.

namespace engram {
namespace {

grpc::ByteBuffer ToMessage(uint64_t call_id, GatherTask::Piece piece,
                           const GatherTask& task) {
  const ReplyEnd end = task.end();
  const Framing framing = FramePiece(call_id, piece.buffer.rows().size(),
                                     piece.last ? &end : nullptr,
                                     piece.buffer.head(), piece.buffer.tail());
  const grpc::Slice slice = std::move(piece.buffer).Release(framing);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

void GatherStream::GiveTurn(CallPtr call) {
  TurnsOf(*call).push_back(std::move(call));
}

std::deque<GatherStream::CallPtr>& GatherStream::TurnsOf(const Call& call) {
  return call.task->small() ? small_turns_ : large_turns_;
}

bool GatherStream::IsInFlight(const CallPtr& call) const {
  const auto found = calls_.find(call->id);
  return found != calls_.end() && found->second == call;
}

// Whose turn it is; null: nobody's.
std::deque<GatherStream::CallPtr>* GatherStream::NextTurns() {
  if (!small_turns_.empty()) return &small_turns_;
  if (large_turns_.empty() ||
      large_waiting_ >= service_.limits.max_waiting_pieces) {
    return nullptr;
  }
  return &large_turns_;
}

// A small gather at once, between two events; a large one when none waits.
void GatherStream::StartPump() {
  bool small = false;
  {
    MutexLock lock(&mutex_);
    small = !small_turns_.empty();
  }
  if (small && service_.MayGatherHere(*source_.loop)) {
    Pump();
    return EventEnded();
  }
  const absl::Status status = service_.Schedule(
      *source_.loop,
      [this] {
        Pump();
        Advance();
        EventEnded();
      },
      GatherTask::UrgencyOf(small));
  if (status.ok()) return;
  {
    MutexLock lock(&mutex_);
    pumping_ = false;
    Abandon(status);
  }
  EventEnded();
}

// One piece only, then whoever waits for this thread.
void GatherStream::Pump() {
  CallPtr call = TakeTurn();
  if (call == nullptr) return;
  absl::StatusOr<std::optional<GatherTask::Piece>> piece = call->task->Next();
  if (!piece.ok()) return PutBack(std::move(call), piece.status());
  if (!piece->has_value()) return AwaitRows(std::move(call));
  PutBack(std::move(call), **std::move(piece));
}

// The gather whose turn it is; null, and the pump is over, when there is none.
GatherStream::CallPtr GatherStream::TakeTurn() {
  MutexLock lock(&mutex_);
  std::deque<CallPtr>* const turns = NextTurns();
  if (turns == nullptr) {
    pumping_ = false;
    return nullptr;
  }
  CallPtr call = std::move(turns->front());
  turns->pop_front();
  return call;
}

void GatherStream::PutBack(CallPtr call,
                           absl::StatusOr<GatherTask::Piece> piece) {
  const absl::StatusCode code = piece.status().code();
  const bool ended = !piece.ok() || piece->last;
  grpc::ByteBuffer message =
      piece.ok() ? ToMessage(call->id, *std::move(piece), *call->task)
                 : StreamError(call->id, piece.status());
  {
    MutexLock lock(&mutex_);
    pumping_ = false;
    if (!IsInFlight(call)) return;  // cancelled meanwhile
    outgoing_.push_back({std::move(message), ended ? call : nullptr});
    if (!ended) return GiveTurn(std::move(call));
    calls_.erase(call->id);
  }
  call->task->Record(code);
}

// The gather gives its turn away until its rows are there.
void GatherStream::AwaitRows(CallPtr call) {
  {
    MutexLock lock(&mutex_);
    pumping_ = false;
    if (!IsInFlight(call)) return;
    waiting_.emplace(call.get(), call);
    if (!call->task->small()) ++large_waiting_;
    ++busy_;
  }
  // Back on a thread of the loop; on the tier's when the loop comes to its end.
  // Urgent: nothing is gathered there but what is small.
  call->task->FetchRows([this, key = call.get()] {
    if (!source_.loop->DeferUrgent([this, key] { OnRows(key); })) OnRows(key);
  });
}

void GatherStream::OnRows(const Call* key) {
  CallPtr call;
  {
    MutexLock lock(&mutex_);
    call = std::move(waiting_.extract(key).mapped());
    if (!call->task->small()) --large_waiting_;
    // Its piece takes memory: it goes first.
    if (IsInFlight(call)) {
      TurnsOf(*call).push_front(std::move(call));
    } else {
      --left_waiting_;
    }
  }
  call.reset();  // of a gather that has ended; before the stream
  Advance();
  EventEnded();
}

void GatherStream::EndCall(uint64_t id) {
  const auto found = calls_.find(id);
  if (waiting_.contains(found->second.get())) ++left_waiting_;
  calls_.erase(found);
}

void GatherStream::Expire() {
  std::vector<Expired> expired;
  bool stalled = false;
  {
    MutexLock lock(&mutex_);
    stalled = IsStalled();
    TakeExpired(expired);
    for (const Expired& entry : expired) EndCall(entry.id);
    if (!expired.empty()) ++expiring_;
  }
  if (stalled) context_.TryCancel();
  if (!expired.empty()) EndExpired(std::move(expired));
}

bool GatherStream::IsStalled() const {
  return writing_now_ && !abandoned_ &&
         service_.clock.Now() - writing_since_ > service_.limits.stall;
}

// They are told only once what they held is free again, but for rows that are
// on their way.
void GatherStream::EndExpired(std::vector<Expired> expired) {
  for (Expired& entry : expired) {
    entry.call->task->Record(entry.status.code());
    entry.call.reset();
  }
  {
    MutexLock lock(&mutex_);
    --expiring_;
    for (const Expired& entry : expired) {
      if (!abandoned_) Say(StreamError(entry.id, entry.status));
    }
  }
  Advance();
}

// The gather that the pump holds looks for itself.
void GatherStream::TakeExpired(std::vector<Expired>& expired) {
  const auto take = [&](const CallPtr& call) {
    absl::Status status = call->task->CheckAwaited();
    if (status.ok()) return false;
    expired.push_back({call->id, call, std::move(status)});
    return true;
  };
  std::erase_if(small_turns_, take);
  std::erase_if(large_turns_, take);
  for (const auto& [key, call] : waiting_) {
    if (IsInFlight(call)) take(call);
  }
}

}  // namespace engram
