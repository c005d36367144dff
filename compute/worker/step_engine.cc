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
  options.max_stream_bytes = std::max(
      options.max_stream_bytes,
      layer_tokens * TokenStreamBytes(block.config(), StreamDtype::kF32));
  return options;
}

}  // namespace

absl::Status OverloadedError(absl::string_view what) {
  return WithRetryAfter(MakeError(ErrorReason::kOverloaded, what), kRetryAfter);
}

StepEngine::StepEngine(const Options& options)
    : options_(WithRoomForOneStep(options)),
      // A step queues its start and its end, so this can never be full.
      hash_thread_({.thread_count = 1,
                    .max_queued = 2 * options.max_steps_in_flight + 2}) {}

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
  ENGRAM_ASSIGN_OR_RETURN(
      StepRequest request,
      StepRequest::Create(block(), options_.max_tokens_per_step,
                          std::move(spec)));
  auto step = std::make_shared<Step>(
      *this, std::move(request), now,
      std::min(deadline, now + options_.step_timeout), std::move(observer));
  ENGRAM_RETURN_IF_ERROR(Admit(step));
  return step;
}

absl::Status StepEngine::Admit(std::shared_ptr<Step> step) {
  const uint64_t bytes = PrefetchedBytes(step->request());
  MutexLock lock(&mutex_);
  if (steps_.size() >= options_.max_steps_in_flight) {
    return OverloadedError(absl::StrCat("the worker has ", steps_.size(),
                                        " steps in flight, its limit"));
  }
  if (bytes > options_.max_prefetched_bytes - prefetched_bytes_) {
    return OverloadedError(absl::StrCat(
        "rows of this step: ", bytes, " bytes; the worker holds ",
        prefetched_bytes_, " of at most ", options_.max_prefetched_bytes));
  }
  prefetched_bytes_ += bytes;
  const Step* const key = step.get();
  steps_.emplace(key, std::move(step));
  metrics().steps_in_flight().Set(static_cast<double>(steps_.size()));
  metrics().prefetched_bytes().Set(static_cast<double>(prefetched_bytes_));
  return absl::OkStatus();
}

void StepEngine::ExpireSteps() {
  const absl::Time now = clock().Now();
  std::vector<std::shared_ptr<Step>> late;
  {
    MutexLock lock(&mutex_);
    for (const auto& [key, step] : steps_) {
      if (step->deadline() <= now) late.push_back(step);
    }
  }
  for (const auto& step : late) step->Expire();
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

void StepEngine::RunOnHashThread(absl::AnyInvocable<void()> task) {
  ENGRAM_CHECK(hash_thread_.TryAdd(std::move(task)));
}

absl::StatusOr<StreamReservation> StepEngine::ReserveStreams(uint64_t bytes) {
  MutexLock lock(&mutex_);
  if (bytes > options_.max_stream_bytes - stream_bytes_) {
    return OverloadedError(
        absl::StrCat("streams: ", bytes, " bytes; the worker holds ",
                     stream_bytes_, " of at most ", options_.max_stream_bytes));
  }
  stream_bytes_ += bytes;
  metrics().stream_bytes().Set(static_cast<double>(stream_bytes_));
  return StreamReservation(this, bytes);
}

void StepEngine::ReleaseStreams(uint64_t bytes) {
  MutexLock lock(&mutex_);
  ENGRAM_CHECK(bytes <= stream_bytes_);
  stream_bytes_ -= bytes;
  metrics().stream_bytes().Set(static_cast<double>(stream_bytes_));
}

StreamReservation::~StreamReservation() {
  if (engine_ != nullptr) engine_->ReleaseStreams(bytes_);
}

void StepEngine::Ended(const Step& step, const absl::Status& status) {
  metrics().StepEnded(status.code());
  metrics().StageTook(StepStage::kStep, clock().Now() - step.begun());
  const uint64_t bytes = PrefetchedBytes(step.request());
  MutexLock lock(&mutex_);
  ENGRAM_CHECK(bytes <= prefetched_bytes_ && steps_.count(&step) == 1);
  prefetched_bytes_ -= bytes;
  steps_.erase(&step);
  metrics().steps_in_flight().Set(static_cast<double>(steps_.size()));
  metrics().prefetched_bytes().Set(static_cast<double>(prefetched_bytes_));
  changed_.NotifyAll();
}

}  // namespace engram
