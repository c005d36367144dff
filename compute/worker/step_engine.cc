#include "compute/worker/step_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"

namespace engram {
namespace {

// When a caller that met a limit may come again: about a step of decode.
constexpr absl::Duration kRetryAfter = absl::Milliseconds(20);

// A layer of a step has at most one run in it; so, one of a step that has
// ended and not been thrown away yet.
constexpr uint64_t kMaxQueuedRuns = 65536;

// A step queues its start and its end. Twice that, so that no caller's share is
// ever met: a task can always be queued.
uint64_t MaxQueuedHashes(const StepEngine::Options& options) {
  return 2 * (2 * options.max_steps_in_flight + 2);
}

uint64_t PackedBytesPerToken(const EngramBlock& block) {
  return uint64_t{block.hasher().columns()} * block.row_format().row_bytes();
}

StepEngine::Options WithRoomForOneStep(StepEngine::Options options) {
  ENGRAM_CHECK(options.block != nullptr && options.compute_pool != nullptr &&
               options.metrics != nullptr && options.max_tokens_per_run > 0);
  const EngramBlock& block = *options.block;
  const uint64_t layer_tokens =
      options.max_tokens_per_step * block.layout().layers().size();
  options.max_prefetched_bytes = std::max(
      options.max_prefetched_bytes, layer_tokens * PackedBytesPerToken(block));
  // Streams come bit by bit, rows are asked for at once.
  options.max_stream_bytes = std::max(
      options.max_stream_bytes,
      FairShare::LimitFor(layer_tokens *
                          TokenStreamBytes(block.config(), StreamDtype::kF32)));
  return options;
}

const char* ToString(WorkerBound bound) {
  switch (bound) {
    case WorkerBound::kSteps:
      return "steps in flight";
    case WorkerBound::kPrefetchedBytes:
      return "bytes of fetched rows";
    case WorkerBound::kStreamBytes:
      return "bytes of streams";
    case WorkerBound::kForwardStreams:
      return "Forward streams";
    case WorkerBound::kQueuedRuns:
      return "runs that wait for a thread";
  }
  return "";
}

}  // namespace

absl::Status OverloadedError(absl::string_view what) {
  return WithRetryAfter(MakeError(ErrorReason::kOverloaded, what), kRetryAfter);
}

absl::Status TakeShare(FairShare& share, WorkerBound bound,
                       const CallerId& caller, uint64_t amount,
                       WorkerMetrics& metrics) {
  const FairShare::Verdict verdict = share.Take(caller, amount);
  if (verdict == FairShare::Verdict::kTaken) return absl::OkStatus();
  metrics.Refused(bound, verdict);
  std::string text =
      absl::StrCat(amount, " more: the worker has ", share.used(),
                   " of at most ", share.limit(), " ", ToString(bound));
  if (verdict == FairShare::Verdict::kAboveShare) {
    absl::StrAppend(&text, ", ", share.HeldBy(caller),
                    " of them for this caller, ", caller.name,
                    "; what is left is kept for others");
  }
  return OverloadedError(text);
}

StepEngine::StepEngine(const Options& options)
    : options_(WithRoomForOneStep(options)),
      step_share_(options_.max_steps_in_flight),
      prefetched_share_(options_.max_prefetched_bytes),
      stream_share_(options_.max_stream_bytes),
      compute_(options_.compute_pool, kMaxQueuedRuns, &metrics().queued_runs()),
      hash_thread_(
          {.thread_count = 1, .max_queued = MaxQueuedHashes(options_)}),
      hash_(&hash_thread_, MaxQueuedHashes(options_),
            &metrics().queued_hashes()) {
  metrics().SetQueueLimits(MaxQueuedHashes(options_), kMaxQueuedRuns);
}

StepEngine::~StepEngine() {
  std::vector<std::shared_ptr<Step>> steps;
  {
    MutexLock lock(&mutex_);
    draining_ = true;
    for (const auto& [key, step] : steps_) steps.push_back(step);
  }
  for (const auto& step : steps) {
    step->Fail(absl::CancelledError("the worker is going down"));
  }
  steps.clear();
  MutexLock lock(&mutex_);
  while (!steps_.empty()) changed_.Wait(&mutex_);
}

void StepEngine::SetRowSource(RowSource* source) {
  const absl::Status block_health = block().health();
  MutexLock lock(&mutex_);
  ENGRAM_CHECK(row_source_ == nullptr && source != nullptr);
  ENGRAM_CHECK(source->row_format() == options_.block->row_format());
  row_source_ = source;
  metrics().ready().Set(CheckTakesSteps(block_health).ok() ? 1 : 0);
}

void StepEngine::SetTables(absl::Status usable) {
  MutexLock lock(&mutex_);
  tables_ = std::move(usable);
}

absl::Status StepEngine::ObserveBlock() {
  metrics().SetBlockUse(block().use());
  const absl::Status health = block().health();
  MutexLock lock(&mutex_);
  metrics().ready().Set(CheckTakesSteps(health).ok() ? 1 : 0);
  return health;
}

void StepEngine::Drain() {
  MutexLock lock(&mutex_);
  draining_ = true;
  metrics().ready().Set(0);
}

bool StepEngine::draining() const {
  MutexLock lock(&mutex_);
  return draining_;
}

bool StepEngine::ready() const { return CheckTakesSteps().ok(); }

absl::Status StepEngine::CheckTakesSteps() const {
  const absl::Status block_health = block().health();
  MutexLock lock(&mutex_);
  return CheckTakesSteps(block_health);
}

absl::Status StepEngine::CheckTakesSteps(
    const absl::Status& block_health) const {
  if (draining_) {
    return MakeError(ErrorReason::kDraining,
                     absl::StrCat("worker ", options_.worker_name,
                                  " is draining and takes no new steps"),
                     {{"server", options_.worker_name}});
  }
  if (!block_health.ok()) return BlockFailedError(block_health);
  if (row_source_ == nullptr) {
    return MakeError(ErrorReason::kNotReady,
                     absl::StrCat("worker ", options_.worker_name,
                                  " still waits for table servers"),
                     {{"worker", options_.worker_name}});
  }
  if (!tables_.ok()) {
    return MakeError(ErrorReason::kNotReady,
                     absl::StrCat("worker ", options_.worker_name,
                                  " has lost its tables: ", tables_.message()),
                     {{"worker", options_.worker_name}});
  }
  return absl::OkStatus();
}

absl::Status StepEngine::BlockFailedError(const absl::Status& health) const {
  return MakeError(ErrorReason::kNotReady,
                   absl::StrCat("worker ", options_.worker_name,
                                " takes no steps any more: ", health.message()),
                   {{"worker", options_.worker_name}});
}

absl::StatusOr<std::shared_ptr<Step>> StepEngine::Begin(
    StepSpec spec, absl::Time deadline,
    std::shared_ptr<StepObserver> observer) {
  auto step = TryBegin(std::move(spec), deadline, std::move(observer));
  if (!step.ok()) {
    metrics().StepEnded(step.status().code());
    return step;
  }
  metrics().StepTokens((*step)->request().tokens(),
                       (*step)->request().live_tokens());
  return step;
}

absl::StatusOr<std::shared_ptr<Step>> StepEngine::TryBegin(
    StepSpec spec, absl::Time deadline,
    std::shared_ptr<StepObserver> observer) {
  const absl::Time now = clock().Now();
  if (deadline <= now) {
    return absl::DeadlineExceededError(
        "the deadline had passed before the step began");
  }
  ENGRAM_RETURN_IF_ERROR(CheckTakesSteps());
  if (!spec.version.empty() && spec.version != options_.version) {
    return MakeError(
        ErrorReason::kWrongTable,
        absl::StrCat("the step asks for table version ", spec.version,
                     "; this worker serves ", options_.version),
        {{"asked", spec.version}, {"served", options_.version}});
  }
  CallerId caller = std::move(spec.caller);
  ENGRAM_ASSIGN_OR_RETURN(
      StepRequest request,
      StepRequest::Create(block(), options_.max_tokens_per_step,
                          std::move(spec)));
  auto step = std::make_shared<Step>(
      *this, std::move(caller), std::move(request), now,
      std::min(deadline, now + options_.step_timeout), std::move(observer));
  ENGRAM_RETURN_IF_ERROR(Admit(step));
  return step;
}

absl::Status StepEngine::Admit(std::shared_ptr<Step> step) {
  const CallerId& caller = step->caller();
  const uint64_t bytes = PrefetchedBytes(step->request());
  MutexLock lock(&mutex_);
  ENGRAM_RETURN_IF_ERROR(
      TakeShare(step_share_, WorkerBound::kSteps, caller, 1, metrics()));
  const absl::Status rows =
      TakeShare(prefetched_share_, WorkerBound::kPrefetchedBytes, caller, bytes,
                metrics());
  if (!rows.ok()) {
    step_share_.Give(caller, 1);
    return rows;
  }
  const Step* const key = step.get();
  steps_.emplace(key, std::move(step));
  ShowUse();
  return absl::OkStatus();
}

void StepEngine::ShowUse() {
  metrics().callers().Set(static_cast<double>(step_share_.callers()));
  metrics().steps_in_flight().Set(static_cast<double>(step_share_.used()));
  metrics().prefetched_bytes().Set(
      static_cast<double>(prefetched_share_.used()));
  metrics().stream_bytes().Set(static_cast<double>(stream_share_.used()));
}

void StepEngine::ExpireSteps() {
  const absl::Time now = clock().Now();
  std::vector<std::shared_ptr<Step>> late;
  {
    MutexLock lock(&mutex_);
    for (const auto& [key, step] : steps_) {
      if (step->first_deadline() <= now) late.push_back(step);
    }
  }
  for (const auto& step : late) step->ExpireAt(now);
}

size_t StepEngine::steps_in_flight() const {
  MutexLock lock(&mutex_);
  return steps_.size();
}

uint64_t StepEngine::PrefetchedBytes(const StepRequest& request) const {
  return request.live_tokens() * request.layer_indices().size() *
         PackedBytesPerToken(block());
}

RowSource& StepEngine::row_source() const {
  MutexLock lock(&mutex_);
  ENGRAM_CHECK(row_source_ != nullptr);
  return *row_source_;
}

void StepEngine::RunOnHashThread(const CallerId& caller,
                                 absl::AnyInvocable<void()> task) {
  ENGRAM_CHECK(hash_.Add(caller, std::move(task)) ==
               FairShare::Verdict::kTaken);
}

absl::Status StepEngine::RunOnComputePool(const CallerId& caller,
                                          absl::AnyInvocable<void()> task) {
  const FairShare::Verdict verdict = compute_.Add(caller, std::move(task));
  if (verdict == FairShare::Verdict::kTaken) return absl::OkStatus();
  metrics().Refused(WorkerBound::kQueuedRuns, verdict);
  return OverloadedError(absl::StrCat(
      metrics().queued_runs().Value(),
      " runs wait for a compute thread, at most ", kMaxQueuedRuns,
      verdict == FairShare::Verdict::kFull
          ? " may"
          : absl::StrCat(" may; what is left is kept for callers other than ",
                         caller.name)));
}

absl::StatusOr<StreamReservation> StepEngine::ReserveStreams(
    const CallerId& caller, uint64_t bytes) {
  MutexLock lock(&mutex_);
  ENGRAM_RETURN_IF_ERROR(TakeShare(stream_share_, WorkerBound::kStreamBytes,
                                   caller, bytes, metrics()));
  ShowUse();
  return StreamReservation(this, caller, bytes);
}

void StepEngine::ReleaseStreams(const CallerId& caller, uint64_t bytes) {
  MutexLock lock(&mutex_);
  stream_share_.Give(caller, bytes);
  ShowUse();
}

StreamReservation::~StreamReservation() {
  if (engine_ != nullptr) engine_->ReleaseStreams(caller_, bytes_);
}

void StepEngine::Ended(const Step& step, const absl::Status& status) {
  metrics().StepEnded(status.code());
  metrics().StageTook(StepStage::kStep, clock().Now() - step.begun());
  const uint64_t bytes = PrefetchedBytes(step.request());
  MutexLock lock(&mutex_);
  ENGRAM_CHECK(steps_.count(&step) == 1);
  prefetched_share_.Give(step.caller(), bytes);
  step_share_.Give(step.caller(), 1);
  steps_.erase(&step);
  ShowUse();
  changed_.NotifyAll();
}

}  // namespace engram
