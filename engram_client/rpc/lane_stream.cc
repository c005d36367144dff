#include "engram_client/rpc/lane_stream.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/wire/error_detail.h"
#include "engram_client/rpc/lane_messages.h"

namespace engram {
namespace {

std::unique_ptr<grpc::GenericClientAsyncReaderWriter> Prepare(
    const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext& context,
    QueueLoop& loop) {
  // The stream begins with its first message, without an event of its own.
  context.set_initial_metadata_corked(true);
  auto stream = grpc::GenericStub(channel).PrepareCall(
      &context, GatherStreamMethod(), &loop.queue());
  stream->StartCall(nullptr);
  return stream;
}

absl::Status Cancelled() { return absl::CancelledError("cancelled"); }

template <typename T>
void Drop(std::vector<T>& from, const T& what) {
  from.erase(std::remove(from.begin(), from.end(), what), from.end());
}

}  // namespace

LaneStream::LaneStream(LiveCount::Token token,
                       const std::shared_ptr<grpc::Channel>& channel,
                       QueueLoop& loop,
                       const std::atomic<size_t>& max_in_flight)
    : token_(std::move(token)),
      loop_(loop),
      max_in_flight_(max_in_flight),
      stream_(Prepare(channel, context_, loop)) {}

bool LaneStream::Add(const CallPtr& call) {
  bool refused = false;
  {
    MutexLock lock(&mutex_);
    if (closed_) return false;
    refused = waiting_.size() >= kMaxWaiting;
    if (refused) {
      End(call, MakeError(ErrorReason::kOverloaded,
                          absl::StrCat(waiting_.size(),
                                       " gathers wait for one connection, the "
                                       "limit")));
    } else {
      waiting_.push_back(call);
      WatchDeadline(call->deadline());
    }
  }
  if (refused) {
    TellLater({call});
  } else {
    Advance();
  }
  return true;
}

bool LaneStream::Open() {
  {
    MutexLock lock(&mutex_);
    if (closed_) return false;
    if (!opened_ && waiting_.empty()) cancels_.push_back(0);  // of no call
  }
  Advance();
  return true;
}

void LaneStream::Cancel(const CallPtr& call) {
  bool tell = false;
  bool stuck = false;
  {
    MutexLock lock(&mutex_);
    if (call->ended) return;
    tell = Abandon(call, Cancelled());
    stuck = BecameStuck();
  }
  if (tell) TellLater({call});
  stuck ? context_.TryCancel() : Advance();
}

void LaneStream::Close() {
  std::shared_ptr<LaneStream> self;  // of a stream without an event to come
  std::vector<CallPtr> ended;
  {
    MutexLock lock(&mutex_);
    if (!closed_) why_broken_ = Cancelled();
    closed_ = true;
    ended = EndAll(Cancelled(), Cancelled());
    if (!opened_) finished_ = true;
    if (finished_ && operations_ == 0) self = std::move(self_);
  }
  TellLater(std::move(ended));
  context_.TryCancel();
}

void LaneStream::Advance() {
  grpc::ByteBuffer message;
  bool first = false;
  {
    MutexLock lock(&mutex_);
    if (writing_ || closed_ || !TakeMessage(&message)) return;
    first = !opened_;
    opened_ = writing_ = true;
    BeginOperation();
    if (first) BeginOperation();
  }
  stream_->Write(message, write_event_.tag());
  if (first) stream_->Read(&incoming_, read_event_.tag());
}

bool LaneStream::TakeMessage(grpc::ByteBuffer* message) {
  // First, so that the server never has more gathers than it allows.
  if (!cancels_.empty()) {
    *message = CancelBuffer(cancels_.front());
    cancels_.pop_front();
    return true;
  }
  if (waiting_.empty() || in_flight_.size() >= max_in_flight_.load())
    return false;
  CallPtr call = std::move(waiting_.front());
  waiting_.pop_front();
  call->id = next_id_++;
  *message = call->Request(call->id);
  in_flight_.push_back(std::move(call));
  return true;
}

void LaneStream::OnWrite(bool ok) {
  std::shared_ptr<LaneStream> self;
  {
    MutexLock lock(&mutex_);
    self = EndOperation();
    writing_ = false;
    if (!ok) closed_ = true;  // the read says why
  }
  Advance();
}

void LaneStream::OnRead(bool ok) {
  std::shared_ptr<LaneStream> self;
  {
    MutexLock lock(&mutex_);
    self = EndOperation();
  }
  if (!ok) return Finish();
  std::vector<grpc::Slice> slices;
  absl::StatusOr<PieceMessage> message = absl::InternalError("not read");
  if (incoming_.Dump(&slices).ok()) {
    std::vector<absl::Span<const std::byte>> spans;
    spans.reserve(slices.size());
    for (const grpc::Slice& slice : slices) {
      spans.push_back(
          {reinterpret_cast<const std::byte*>(slice.begin()), slice.size()});
    }
    message = ReadPieceMessage(spans);
  }
  incoming_.Clear();
  if (!message.ok()) return Break(message.status());
  Receive(*message);
}

void LaneStream::Receive(const PieceMessage& message) {
  absl::Status error;
  if (message.kind == PieceMessage::Kind::kError) error = ErrorOf(message);
  Step step;
  {
    MutexLock lock(&mutex_);
    step = Decide(message, std::move(error));
  }
  if (!step.broken.ok()) return Break(step.broken);
  // A sum needs the pieces one after another.
  absl::Status copied;
  const bool summed = step.copy != nullptr && step.copy->wants_sum();
  if (summed) copied = step.copy->CopyAndSum(message, step.offset_bytes);
  ReadNext();
  Advance();
  if (step.copy != nullptr) {
    if (!summed) step.copy->Copy(message, step.offset_bytes);
    EndCopy(step.copy, std::move(copied));
  }
  if (step.tell != nullptr) Tell({step.tell});
}

LaneStream::Step LaneStream::Decide(const PieceMessage& message,
                                    absl::Status error) {
  Step step;
  if (message.call_id == 0 || message.call_id >= next_id_) {
    step.broken = absl::UnavailableError(
        absl::StrCat("reply to call ", message.call_id, ", which never was"));
    return step;
  }
  const auto found =
      std::find_if(in_flight_.begin(), in_flight_.end(),
                   [&](const CallPtr& c) { return c->id == message.call_id; });
  if (found == in_flight_.end()) {  // of a call that was abandoned
    if (message.kind == PieceMessage::Kind::kError || message.last) {
      Drop(abandoned_, message.call_id);
    }
    return step;
  }
  const CallPtr call = *found;
  switch (message.kind) {
    case PieceMessage::Kind::kPiece:
      TakePiece(call, message, step);
      break;
    case PieceMessage::Kind::kError:
      if (End(call, std::move(error))) step.tell = call;
      break;
    case PieceMessage::Kind::kNone:
      step.broken = absl::UnavailableError(absl::StrCat(
          "reply to call ", message.call_id, " is neither piece nor error"));
      break;
  }
  return step;
}

void LaneStream::TakePiece(const CallPtr& call, const PieceMessage& message,
                           Step& step) {
  step.offset_bytes = call->reserved_bytes();
  absl::Status status = call->Reserve(message);
  if (!status.ok()) {
    const bool told = message.last ? End(call, std::move(status))
                                   : Abandon(call, std::move(status));
    if (told) step.tell = call;
    return;
  }
  ++call->copies;
  step.copy = call;
  if (call->complete) Drop(in_flight_, call);
}

void LaneStream::ReadNext() {
  {
    MutexLock lock(&mutex_);
    BeginOperation();
  }
  stream_->Read(&incoming_, read_event_.tag());
}

void LaneStream::EndCopy(const CallPtr& call, absl::Status status) {
  bool tell = false;
  {
    MutexLock lock(&mutex_);
    --call->copies;
    if (!call->ended && !status.ok()) {
      Abandon(call, std::move(status));
    } else if (!call->ended && call->complete && call->copies == 0) {
      End(call, absl::OkStatus());
    }
    tell = call->ended && call->copies == 0;
  }
  if (tell) Tell({call});
}

void LaneStream::Break(absl::Status why) {
  {
    MutexLock lock(&mutex_);
    if (why_broken_.ok()) {
      why_broken_ = absl::UnavailableError(
          absl::StrCat("gathers broken off: ", why.message()));
    }
  }
  context_.TryCancel();
  Finish();
}

void LaneStream::Finish() {
  {
    MutexLock lock(&mutex_);
    closed_ = true;
    BeginOperation();
  }
  stream_->Finish(&grpc_status_, finish_event_.tag());
}

void LaneStream::OnFinish(bool /*ok*/) {
  std::shared_ptr<LaneStream> self;
  std::vector<CallPtr> ended;
  absl::Status status = FromGrpcStatus(grpc_status_);
  if (status.ok()) status = absl::UnavailableError("stream ended");
  {
    MutexLock lock(&mutex_);
    finished_ = true;
    if (!why_broken_.ok()) status = why_broken_;
    ended =
        EndAll(OfOneGather(status),
               absl::UnavailableError(absl::StrCat(
                   "not sent before the stream ended: ", status.message())));
    self = EndOperation();
  }
  Tell(ended);
}

bool LaneStream::End(const CallPtr& call, absl::Status status) {
  call->ended = true;
  call->result = std::move(status);
  Drop(in_flight_, call);
  if (call->id == 0) {
    const auto found = std::find(waiting_.begin(), waiting_.end(), call);
    if (found != waiting_.end()) waiting_.erase(found);
  }
  return call->copies == 0;
}

bool LaneStream::Abandon(const CallPtr& call, absl::Status status) {
  if (call->id != 0 && !call->complete && !closed_) {
    cancels_.push_back(call->id);
    abandoned_.push_back(call->id);
  }
  return End(call, std::move(status));
}

bool LaneStream::BecameStuck() {
  if (closed_ || abandoned_.size() <= kMaxAbandoned) return false;
  closed_ = true;  // the read says so
  why_broken_ = absl::UnavailableError(
      absl::StrCat("no word on ", abandoned_.size(),
                   " cancelled gathers, the limit is ", kMaxAbandoned));
  return true;
}

std::vector<LaneStream::CallPtr> LaneStream::OpenCalls() const {
  std::vector<CallPtr> calls(in_flight_);
  calls.insert(calls.end(), waiting_.begin(), waiting_.end());
  return calls;
}

std::vector<LaneStream::CallPtr> LaneStream::EndAll(
    const absl::Status& in_flight, const absl::Status& waiting) {
  std::vector<CallPtr> tell;
  for (const CallPtr& call : OpenCalls()) {
    if (End(call, call->id == 0 ? waiting : in_flight)) tell.push_back(call);
  }
  alarm_.Cancel();
  return tell;
}

void LaneStream::Tell(absl::Span<const CallPtr> calls) {
  for (const CallPtr& call : calls) call->Tell();
}

void LaneStream::TellLater(std::vector<CallPtr> calls) {
  if (calls.empty()) return;
  // With the stream, so that whoever waits for its end waits for this too.
  loop_.Defer(
      [self = shared_from_this(), calls = std::move(calls)] { Tell(calls); });
}

void LaneStream::WatchDeadline(absl::Time deadline) {
  if (deadline >= alarm_at_ || finished_) return;
  const bool armed = alarm_at_ != absl::InfiniteFuture();
  alarm_at_ = deadline;
  if (armed) return alarm_.Cancel();  // its event sets it again
  BeginOperation();
  alarm_.Set(&loop_.queue(), absl::ToChronoTime(deadline), alarm_event_.tag());
}

void LaneStream::OnAlarm(bool /*ok*/) {
  std::shared_ptr<LaneStream> self;
  std::vector<CallPtr> expired;
  bool stuck = false;
  {
    MutexLock lock(&mutex_);
    self = EndOperation();
    alarm_at_ = absl::InfiniteFuture();
    const absl::Time now = absl::Now();
    absl::Time next = absl::InfiniteFuture();
    for (const CallPtr& call : OpenCalls()) {
      if (call->deadline() > now) {
        next = std::min(next, call->deadline());
      } else if (Abandon(call, absl::DeadlineExceededError(
                                   "no reply before the deadline"))) {
        expired.push_back(call);
      }
    }
    WatchDeadline(next);
    stuck = BecameStuck();
  }
  stuck ? context_.TryCancel() : Advance();
  Tell(expired);
}

void LaneStream::BeginOperation() {
  ++operations_;
  if (self_ == nullptr) self_ = shared_from_this();
}

std::shared_ptr<LaneStream> LaneStream::EndOperation() {
  --operations_;
  if (operations_ == 0 && finished_) return std::move(self_);
  return self_;
}

}  // namespace engram
