#include "engram_client/compute/apply_step.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"
#include "engram_client/rpc/timer_queue.h"

namespace engram {

struct ApplyStep::Call {
  std::unique_ptr<WorkerSet::Lease> lease;
  const absl::Time sent_at = SteadyNow();
  grpc::ClientContext context;
  v1::ApplyResponse response;       // gRPC's until the end
  std::optional<grpc::Status> end;  // under the step's mutex

  absl::Status status() const {
    const absl::Status status = FromGrpcStatus(*end);
    if (absl::IsCancelled(status)) {
      // Not by this client: the worker went down with the call in flight.
      return absl::UnavailableError(status.message());
    }
    return status;
  }
};

ApplyStep::ApplyStep(const v1::ApplyRequest* request, Attempts attempts)
    : request_(*request), attempts_(std::move(attempts)) {}

ApplyStep::~ApplyStep() {
  for (const auto& call : calls_) call->context.TryCancel();
  MutexLock lock(&mutex_);
  for (const auto& call : calls_) {
    while (!call->end.has_value()) ended_.Wait(&mutex_);
  }
}

absl::Status ApplyStep::Run(Take take) {
  while (true) {
    if (calls_.empty()) {
      ENGRAM_ASSIGN_OR_RETURN(auto lease, attempts_.Next());
      Send(std::move(lease));
    }
    // All calls end with the deadline, if not before.
    const Call* const call = AwaitEnd(attempts_.hedge_at());
    if (call == nullptr) {
      Hedge();
      continue;
    }
    absl::Status status = call->status();
    if (status.ok()) status = take(call->response);
    if (status.ok()) {
      OnAnswer(*call);
      return status;
    }
    ENGRAM_RETURN_IF_ERROR(OnFailure(*call, status));
  }
}

void ApplyStep::Send(std::unique_ptr<WorkerSet::Lease> lease) {
  Call* const call = calls_.emplace_back(std::make_unique<Call>()).get();
  call->lease = std::move(lease);
  call->context.set_deadline(absl::ToChronoTime(attempts_.deadline()));
  call->lease->link().stub().async()->Apply(
      &call->context, &request_, &call->response,
      [this, call](const grpc::Status& status) {
        MutexLock lock(&mutex_);
        call->end = status;
        ended_.NotifyAll();
      });
}

ApplyStep::Call* ApplyStep::AwaitEnd(absl::Time until) {
  MutexLock lock(&mutex_);
  while (true) {
    for (const auto& call : calls_) {
      if (call->end.has_value()) return call.get();
    }
    if (!ended_.WaitUntil(&mutex_, until)) return nullptr;
  }
}

void ApplyStep::Hedge() {
  if (auto lease = attempts_.Hedge(*calls_.front()->lease)) {
    Send(std::move(lease));
  }
}

void ApplyStep::OnAnswer(const Call& call) {
  attempts_.Answered(*call.lease, SteadyNow() - call.sent_at);
  const Call& first = *calls_.front();
  if (&call != &first) attempts_.HedgeWon(*first.lease);
}

absl::Status ApplyStep::OnFailure(const Call& call,
                                  const absl::Status& status) {
  if (absl::IsDeadlineExceeded(status) && &call == calls_.front().get() &&
      absl::Now() >= attempts_.deadline()) {
    attempts_.HeardNothing(*call.lease);
  }
  absl::Status error = attempts_.Failed(*call.lease, status,
                                        /*other_goes_on=*/calls_.size() > 1);
  calls_.erase(std::find_if(calls_.begin(), calls_.end(),
                            [&](const auto& c) { return c.get() == &call; }));
  return error;
}

}  // namespace engram
