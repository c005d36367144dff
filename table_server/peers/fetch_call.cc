#include "table_server/peers/fetch_call.h"

#include <utility>

#include "core/wire/error_detail.h"

namespace engram {

FetchCall::FetchCall(std::shared_ptr<LiveCalls> calls, absl::Time deadline)
    : calls_(std::move(calls)) {
  if (deadline == absl::InfiniteFuture()) return;
  context_.set_deadline(absl::ToChronoTime(deadline));
}

void FetchCall::Start(v1::TableService::Stub& stub, QueueLoop& loop,
                      const v1::FetchPartitionRequest& request) {
  reader_ = stub.PrepareAsyncFetchPartition(&context_, request, &loop.queue());
  reader_->StartCall(started_event_.tag());
}

void FetchCall::ReadOrFinish(bool read) {
  if (read) {
    reader_->Read(&incoming_, read_event_.tag());
  } else {
    reader_->Finish(&grpc_status_, finished_event_.tag());
  }
}

void FetchCall::OnRead(bool ok) {
  if (ok) {
    MutexLock lock(&mutex_);
    if (!abandoned_) {
      arrived_ = true;
      changed_.NotifyAll();
      return;
    }
  }
  ReadOrFinish(ok);
}

void FetchCall::OnFinished(bool /*ok*/) {
  const std::shared_ptr<LiveCalls> calls = calls_;
  {
    MutexLock lock(&mutex_);
    status_ = FromGrpcStatus(grpc_status_);
    ended_ = true;
    changed_.NotifyAll();
  }
  calls->Remove(this);
}

FetchCall::Event FetchCall::Next(std::string& rows, absl::Duration timeout) {
  {
    MutexLock lock(&mutex_);
    if (!arrived_ && !ended_) changed_.WaitFor(&mutex_, timeout);
    if (!arrived_) return ended_ ? Event::kEnded : Event::kNothing;
    arrived_ = false;
  }
  rows.swap(*incoming_.mutable_rows());
  ReadOrFinish(/*read=*/true);
  return Event::kRows;
}

absl::Status FetchCall::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

void FetchCall::Abandon() {
  context_.TryCancel();
  {
    MutexLock lock(&mutex_);
    abandoned_ = true;
    if (!arrived_) return;  // an event goes on
    arrived_ = false;
  }
  ReadOrFinish(/*read=*/true);
}

}  // namespace engram
