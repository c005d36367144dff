#include "engram_client/rpc/gather_operation.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/status_annotate.h"
#include "core/wire/error_detail.h"
#include "engram_client/plan/call_rows.h"
#include "engram_client/plan/row_scatter.h"

namespace engram {
namespace {

// Ends that this thread is telling, one inside the other: only a thread of the
// client has any.
thread_local uint32_t endings_told_here = 0;

std::vector<LayerId> LayerIds(absl::Span<const LayerGather> layers) {
  std::vector<LayerId> ids;
  for (const LayerGather& layer : layers) ids.push_back(layer.layer);
  return ids;
}

// Indices of the layers in the table. REQUIRES: it has them (CheckGather).
std::vector<uint32_t> TableLayers(const TableInfo& table,
                                  absl::Span<const LayerGather> layers) {
  std::vector<uint32_t> indices;
  for (const LayerGather& layer : layers) {
    uint32_t index = 0;
    while (table.layers[index].layer_id != layer.layer) ++index;
    indices.push_back(index);
  }
  return indices;
}

std::vector<absl::Span<std::byte>> Outs(absl::Span<const LayerGather> layers) {
  std::vector<absl::Span<std::byte>> outs;
  for (const LayerGather& layer : layers) outs.push_back(layer.out);
  return outs;
}

}  // namespace

// One call in flight, and the sink of its reply.
class GatherOperation::Call final : public RowSink {
 public:
  Call(std::shared_ptr<GatherOperation> operation, PlannedCall planned)
      : operation(std::move(operation)), planned(std::move(planned)) {}

  // Before the call starts, once.
  void SetRows(CallRows ordered) {
    rows_.emplace(std::move(ordered));
    scatter_.emplace(operation->plan_, *rows_, operation->outs_,
                     operation->row_bytes_);
  }
  const CallRows& rows() const { return *rows_; }

  void Write(uint64_t offset_bytes,
             absl::Span<const std::byte> bytes) override {
    if (!operation->Enter()) return;
    scatter_->Write(offset_bytes, bytes);
    written_bytes_.fetch_add(bytes.size(), std::memory_order_relaxed);
    operation->FinishEnd(operation->Leave());
  }

  bool complete() const {
    return written_bytes_.load(std::memory_order_relaxed) ==
           planned.rows * operation->row_bytes_;
  }

  const std::shared_ptr<GatherOperation> operation;
  // Once it has started, its segments are guarded by the operation's mutex:
  // a call that failed gives them back.
  PlannedCall planned;
  // Guarded by the operation's mutex; null before it has started.
  std::shared_ptr<TransportCall> transport_call;

 private:
  std::optional<CallRows> rows_;
  std::optional<RowScatter> scatter_;
  std::atomic<uint64_t> written_bytes_{0};
};

GatherOperation::GatherOperation(const GatherEnvironment& environment,
                                 absl::Span<const LayerGather> layers,
                                 absl::Time deadline, Done done)
    : environment_(environment),
      plan_(layers, environment.table->partition_rows),
      layer_ids_(LayerIds(layers)),
      outs_(Outs(layers)),
      row_bytes_(environment.table->row_format.row_bytes()),
      deadline_(deadline),
      queue_(environment.transports.size(), environment.max_rows_per_call,
             TableLayers(*environment.table, layers)),
      servers_asked_(environment.transports.size()),
      rows_left_(plan_.unique_rows().size()),
      done_(std::move(done)) {
  queue_.Add(plan_.parts());
  stats_.rows = plan_.row_count();
  stats_.unique_rows = plan_.unique_rows().size();
}

GatherOperation::GatherOperation(const GatherEnvironment& environment,
                                 absl::Status why, Done done)
    : environment_(environment),
      plan_({}, 1),
      row_bytes_(0),
      deadline_(absl::InfiniteFuture()),
      refused_(std::move(why)),
      queue_(0, 1, {}),
      done_(std::move(done)) {}

void GatherOperation::Start() {
  if (refused_.ok() && deadline_ <= absl::Now()) return OnDeadline();
  Ending ending;
  {
    MutexLock lock(&mutex_);
    if (!refused_.ok() || rows_left_ == 0) {
      ending = DecideEnd(refused_);
    }
    started_ = true;
    if (!decided_ && deadline_ != absl::InfiniteFuture()) {
      deadline_timer_ = environment_.timers->Schedule(
          deadline_, [self = shared_from_this()] { self->OnDeadline(); });
    }
  }
  if (!ending.decided) ending = Dispatch();
  FinishEndElsewhere(ending);
}

void GatherOperation::Cancel() {
  Ending ending;
  {
    MutexLock lock(&mutex_);
    ending = DecideEnd(absl::CancelledError("the gather was cancelled"));
  }
  FinishEndElsewhere(ending);
}

void GatherOperation::OnDeadline() {
  const std::string problems = environment_.server_problems();
  Ending ending;
  {
    MutexLock lock(&mutex_);
    ending = DecideEnd(DeadlineStatus(problems));
  }
  FinishEndElsewhere(ending);
}

void GatherOperation::OnRoutingChange() {
  {
    MutexLock lock(&mutex_);
    if (!started_ || decided_ || queue_.empty()) return;
  }
  FinishEnd(Dispatch());
}

absl::Status GatherOperation::Wait() const {
  MutexLock lock(&mutex_);
  while (!ended_) changed_.Wait(&mutex_);
  return result_;
}

bool GatherOperation::ended() const {
  MutexLock lock(&mutex_);
  return ended_;
}

void GatherOperation::WaitUntilTold() {
  bool tell_here = false;
  {
    MutexLock lock(&mutex_);
    while (!told_ && telling_thread_ != std::this_thread::get_id()) {
      // A `done` of another gather waits for this one: what is queued on the
      // timer thread may stand behind that `done`.
      tell_here = endings_told_here > 0 && TakeQueuedTelling();
      if (tell_here) break;
      changed_.Wait(&mutex_);
    }
  }
  if (tell_here) Tell();
}

GatherStats GatherOperation::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

GatherOperation::Ending GatherOperation::Dispatch() {
  if (!Enter()) return {};
  const std::shared_ptr<const RoutingSnapshot> snapshot =
      environment_.routing->snapshot();
  std::vector<CallPtr> calls;
  {
    MutexLock lock(&mutex_);
    if (!decided_) {
      const absl::Time now = SteadyNow();
      SetWakeTimer(queue_.Route(*snapshot, *environment_.policy, now) - now);
      calls = TakeCalls();
    }
  }
  OrderRows(calls);
  for (const CallPtr& call : calls) StartCall(call);
  return Leave();
}

std::vector<GatherOperation::CallPtr> GatherOperation::TakeCalls() {
  std::vector<CallPtr> calls;
  for (PlannedCall& planned : queue_.TakeStartable()) {
    if (!servers_asked_[planned.server]) ++stats_.servers;
    servers_asked_[planned.server] = true;
    ++stats_.calls;
    calls.push_back(
        std::make_shared<Call>(shared_from_this(), std::move(planned)));
    calls_.insert(calls.back());
  }
  return calls;
}

void GatherOperation::OrderRows(absl::Span<const CallPtr> calls) const {
  if (calls.empty()) return;
  std::vector<std::vector<GatherPlan::Part>> parts;
  parts.reserve(calls.size());
  for (const CallPtr& call : calls) {
    parts.push_back(PartsOf(call->planned.segments));
  }
  std::vector<CallRows> rows =
      CallRows::Order(plan_, std::vector<absl::Span<const GatherPlan::Part>>(
                                 parts.begin(), parts.end()));
  for (size_t i = 0; i < calls.size(); ++i)
    calls[i]->SetRows(std::move(rows[i]));
}

void GatherOperation::SetWakeTimer(absl::Duration delay) {
  environment_.timers->Cancel(wake_timer_);
  wake_timer_ = {};
  const absl::Time when = absl::Now() + delay;
  if (when >= deadline_) return;
  wake_timer_ = environment_.timers->Schedule(
      when, [self = shared_from_this()] { self->FinishEnd(self->Dispatch()); });
}

void GatherOperation::StartCall(const CallPtr& call) {
  const CallRows& rows = call->rows();
  std::vector<TableTransport::RowRun> runs;
  for (const CallRows::Run& run : rows.runs()) {
    runs.push_back({layer_ids_[run.layer_index],
                    rows.row_ids().subspan(run.begin, run.end - run.begin)});
  }
  TableTransport::GatherRequest request;
  request.version = environment_.table->version;
  request.runs = runs;
  request.reply_bytes = call->planned.rows * row_bytes_;
  request.gather_bytes = plan_.unique_rows().size() * row_bytes_;
  request.want_crc32c = environment_.want_crc32c;
  request.deadline = deadline_;
  {
    MutexLock lock(&mutex_);
    if (decided_) {
      calls_.erase(call);
      return;
    }
  }
  std::shared_ptr<TransportCall> transport_call =
      environment_.transports[call->planned.server]->Gather(
          request, call, [call](const absl::Status& status) {
            call->operation->OnCallDone(call, status);
          });
  {
    MutexLock lock(&mutex_);
    if (calls_.count(call) == 0) return;  // done already
    call->transport_call = transport_call;
    if (!decided_) return;
  }
  transport_call->Cancel();
}

void GatherOperation::OnCallDone(const CallPtr& call,
                                 const absl::Status& status) {
  Ending ending;
  {
    MutexLock lock(&mutex_);
    calls_.erase(call);
    call->transport_call.reset();
    queue_.CallEnded(call->planned.server);
    if (decided_) return;
    if (status.ok()) {
      ENGRAM_CHECK(call->complete());
      rows_left_ -= call->planned.rows;
      stats_.bytes_received += call->planned.rows * row_bytes_;
      if (rows_left_ == 0) ending = DecideEnd(absl::OkStatus());
    } else if (MayTryAgain(status)) {
      last_failure_ = CallStatus(*call, status);
      TakeBack(*call, status);
    } else {
      ending = DecideEnd(CallStatus(*call, status));
    }
  }
  if (!ending.decided) ending = Dispatch();
  FinishEnd(ending);
}

void GatherOperation::TakeBack(Call& call, const absl::Status& status) {
  const std::vector<PartitionRef> missing = MissingPartitionsOf(status);
  const auto is_missing = [&](const GatherSegment& segment) {
    return std::binary_search(missing.begin(), missing.end(),
                              PartitionRef{layer_ids_[segment.part.layer_index],
                                           segment.part.partition});
  };
  // A list that names nothing of the call says nothing: all of it failed.
  std::vector<GatherSegment> segments = std::move(call.planned.segments);
  const bool some = std::any_of(segments.begin(), segments.end(), is_missing);
  const auto failed = [&](const GatherSegment& segment) {
    return !some || is_missing(segment);
  };
  const ServerIndex server = call.planned.server;
  const absl::Time now = SteadyNow();
  for (GatherSegment& segment : segments) {
    if (failed(segment)) NoteFailure(segment, server, status, now);
    queue_.Add(std::move(segment));
  }
  // What stands in line there would fail likewise.
  for (GatherSegment& segment : queue_.TakeFromLine(server, failed)) {
    if (failed(segment)) NotePassedOver(segment, server, status, now);
    queue_.Add(std::move(segment));
  }
}

bool GatherOperation::Enter() {
  MutexLock lock(&mutex_);
  if (decided_) return false;
  ++busy_;
  return true;
}

GatherOperation::Ending GatherOperation::Leave() {
  MutexLock lock(&mutex_);
  --busy_;
  Ending ending;
  ending.tell = decided_ && busy_ == 0;
  return ending;
}

GatherOperation::Ending GatherOperation::DecideEnd(absl::Status status) {
  Ending ending;
  if (decided_) return ending;
  decided_ = true;
  result_ = std::move(status);
  ending.decided = true;
  ending.tell = busy_ == 0;
  for (const CallPtr& call : calls_) {
    if (call->transport_call != nullptr) {
      ending.cancel.push_back(call->transport_call);
    }
  }
  queue_.Clear();
  environment_.timers->Cancel(deadline_timer_);
  environment_.timers->Cancel(wake_timer_);
  return ending;
}

void GatherOperation::FinishEnd(const Ending& ending) {
  for (const auto& call : ending.cancel) call->Cancel();
  if (ending.tell) Tell();
}

void GatherOperation::FinishEndElsewhere(const Ending& ending) {
  for (const auto& call : ending.cancel) call->Cancel();
  // Once another thread may tell, the environment may be gone.
  if (!ending.tell) return;
  if (environment_.timers->OnTimerThread()) return Tell();
  MutexLock lock(&mutex_);
  telling_queued_ = true;
  changed_.NotifyAll();
  environment_.timers->Post([self = shared_from_this()] {
    {
      MutexLock lock(&self->mutex_);
      if (!self->TakeQueuedTelling()) return;
    }
    self->Tell();
  });
}

bool GatherOperation::TakeQueuedTelling() {
  return std::exchange(telling_queued_, false);
}

void GatherOperation::Tell() {
  if (refused_.ok()) environment_.on_ending();
  Done done;
  absl::Status result;
  {
    MutexLock lock(&mutex_);
    ended_ = true;
    telling_thread_ = std::this_thread::get_id();
    done = std::move(done_);
    result = result_;
    changed_.NotifyAll();
  }
  ++endings_told_here;
  if (done) done(result);
  done = nullptr;  // what it captured ends before the gather does
  --endings_told_here;
  {
    MutexLock lock(&mutex_);
    told_ = true;
    telling_thread_ = {};
    changed_.NotifyAll();
  }
  environment_.on_finished(this);
}

absl::Status GatherOperation::DeadlineStatus(
    const std::string& problems) const {
  std::vector<GatherPlan::Part> left = queue_.AllParts();
  std::string why =
      queue_.waiting().empty() ? "" : "; no ready server has all of them";
  for (const CallPtr& call : calls_) {
    const std::vector<GatherPlan::Part> asked = PartsOf(call->planned.segments);
    left.insert(left.end(), asked.begin(), asked.end());
    absl::StrAppend(&why, "; no answer from ", call->planned.server_label,
                    " for ", PartitionsText(asked, layer_ids_));
  }
  if (!last_failure_.ok()) {
    absl::StrAppend(&why, "; last failure: ", last_failure_.message());
  }
  if (!problems.empty()) absl::StrAppend(&why, "; ", problems);
  return absl::DeadlineExceededError(absl::StrCat(
      "table ", environment_.table->version, ": deadline passed without ",
      PartitionsText(left, layer_ids_), why));
}

absl::Status GatherOperation::CallStatus(const Call& call,
                                         const absl::Status& status) const {
  return Annotate(
      status,
      absl::StrCat("table ", environment_.table->version, ", ",
                   PartitionsText(PartsOf(call.planned.segments), layer_ids_),
                   " from ", call.planned.server_label));
}

}  // namespace engram
