#include "engram_client/compute/worker_set.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/backoff.h"
#include "core/base/check.h"
#include "core/wire/error_detail.h"
#include "engram_client/compute/step_messages.h"

namespace engram {
namespace {

constexpr absl::Duration kAnswerTimeout = absl::Seconds(2);

}  // namespace

// One GetModel call. Owned by its callback, which always comes.
struct WorkerSet::Question {
  grpc::ClientContext context;
  v1::GetModelRequest request;
  v1::GetModelResponse response;
};

WorkerSet::WorkerSet(const std::vector<std::string>& addresses,
                     StepMetrics* metrics)
    : metrics_(metrics), workers_(addresses.size()) {
  ENGRAM_CHECK(!addresses.empty());
  metrics_->workers.Set(static_cast<double>(addresses.size()));
  for (size_t i = 0; i < addresses.size(); ++i) {
    workers_[i].link = std::make_unique<WorkerLink>(addresses[i]);
    workers_[i].asking = true;
  }
  for (size_t i = 0; i < addresses.size(); ++i) Ask(i);
}

WorkerSet::~WorkerSet() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  timers_.Stop();
  MutexLock lock(&mutex_);
  for (Question* const question : questions_) question->context.TryCancel();
  while (!questions_.empty()) changed_.Wait(&mutex_);
}

// ---- asking ----

void WorkerSet::Ask(size_t index) {
  auto* const question = new Question;
  question->context.set_deadline(
      absl::ToChronoTime(absl::Now() + kAnswerTimeout));
  {
    MutexLock lock(&mutex_);
    if (stopping_) {
      delete question;
      return;
    }
    questions_.push_back(question);
  }
  workers_[index].link->stub().async()->GetModel(
      &question->context, &question->request, &question->response,
      [this, index, question](const grpc::Status& status) {
        OnAnswer(index, FromGrpcStatus(status), question->response);
        MutexLock lock(&mutex_);
        questions_.erase(
            std::find(questions_.begin(), questions_.end(), question));
        delete question;
        changed_.NotifyAll();
      });
}

void WorkerSet::OnAnswer(size_t index, const absl::Status& status,
                         const v1::GetModelResponse& response) {
  absl::StatusOr<ModelInfo> model =
      status.ok() ? ToModelInfo(response) : absl::StatusOr<ModelInfo>(status);
  const std::optional<absl::Status> news =
      TakeAnswer(index, std::move(model), response);
  if (!news.has_value()) return;
  if (!news->ok()) {
    LogLeft(index, *news);
  } else {
    spdlog::info("compute worker at {}: ready",
                 workers_[index].link->address());
  }
}

std::optional<absl::Status> WorkerSet::TakeAnswer(
    size_t index, absl::StatusOr<ModelInfo> model,
    const v1::GetModelResponse& response) {
  MutexLock lock(&mutex_);
  Worker& worker = workers_[index];
  const State before = worker.state;
  worker.asking = false;
  if (model.ok()) {
    worker.limits = {
        .max_tokens_per_step = model->max_tokens_per_step,
        .max_chunk_bytes = model->max_chunk_bytes,
        .max_steps_per_stream = response.max_steps_in_flight_per_stream()};
  }
  if (!model.ok()) {
    worker.state = State::kDown;
    worker.error = model.status();
  } else if (absl::Status same = CheckModel(*model, worker); !same.ok()) {
    worker.state = State::kOtherModel;
    worker.error = std::move(same);
  } else if (!response.ready()) {
    worker.state = State::kDown;
    worker.error = absl::UnavailableError("it is not ready");
  } else {
    worker.state = State::kReady;
    worker.error = absl::OkStatus();
    worker.failures = 0;
  }
  if (model.ok() && !model_.has_value()) model_ = *std::move(model);
  if (worker.state != State::kReady) AskLater(index);
  CountReady();
  changed_.NotifyAll();
  if (worker.state == before) return std::nullopt;
  return worker.error;
}

absl::Status WorkerSet::CheckModel(const ModelInfo& model,
                                   const Worker& worker) {
  if (!model_.has_value()) return absl::OkStatus();
  if (model.version == model_->version && model.config == model_->config &&
      model.layers == model_->layers) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "worker ", worker.link->address(), " computes table version ",
      model.version, ", the others ", model_->version));
}

void WorkerSet::AskLater(size_t index) {
  if (workers_[index].asking) return;
  AskAfter(index, BackoffDelay({}, ++workers_[index].failures));
}

void WorkerSet::AskAfter(size_t index, absl::Duration delay) {
  if (workers_[index].asking || stopping_) return;
  workers_[index].asking = true;
  timers_.Schedule(absl::Now() + delay, [this, index] { Ask(index); });
}

absl::StatusOr<ModelInfo> WorkerSet::WaitForModel(absl::Time deadline) {
  MutexLock lock(&mutex_);
  while (!model_.has_value() || Any(State::kUnasked)) {
    if (changed_.WaitUntil(&mutex_, deadline)) continue;
    if (model_.has_value()) break;
    return absl::UnavailableError(
        absl::StrCat("no compute worker answered in time: ", Errors()));
  }
  ModelInfo model = *model_;
  for (const Worker& worker : workers_) {
    if (worker.state == State::kOtherModel) return worker.error;
    if (!worker.limits.has_value()) continue;
    model.max_tokens_per_step =
        std::min(model.max_tokens_per_step, worker.limits->max_tokens_per_step);
    model.max_chunk_bytes =
        std::min(model.max_chunk_bytes, worker.limits->max_chunk_bytes);
  }
  return model;
}

void WorkerSet::MarkDown(size_t index, const absl::Status& status) {
  {
    MutexLock lock(&mutex_);
    if (workers_[index].state != State::kReady) return;
    SetDown(index, status);
  }
  LogLeft(index, status);
}

void WorkerSet::SetDown(size_t index, const absl::Status& status) {
  workers_[index].state = State::kDown;
  workers_[index].error = status;
  CountReady();
  AskLater(index);
}

void WorkerSet::CountReady() {
  metrics_->workers_ready.Set(static_cast<double>(
      std::count_if(workers_.begin(), workers_.end(),
                    [](const Worker& w) { return w.state == State::kReady; })));
}

void WorkerSet::LogLeft(size_t index, const absl::Status& why) const {
  spdlog::warn("compute worker at {}: gets no steps: {}",
               workers_[index].link->address(), std::string(why.message()));
}

// ---- choosing ----

absl::StatusOr<std::unique_ptr<WorkerSet::Lease>> WorkerSet::Take(
    const std::vector<bool>& avoid, absl::Time deadline) {
  MutexLock lock(&mutex_);
  while (true) {
    std::optional<size_t> index = Choose(avoid, Trials::kIdle);
    if (!index.has_value()) index = Choose(avoid, Trials::kAll);
    if (index.has_value()) return LeaseOf(*index);
    if (Any(State::kReady)) return nullptr;
    if (All(State::kOtherModel)) {
      return absl::FailedPreconditionError(
          absl::StrCat("every worker is of another version: ", Errors()));
    }
    if (!changed_.WaitUntil(&mutex_, deadline)) {
      return absl::DeadlineExceededError(
          absl::StrCat("no compute worker was ready in time: ", Errors()));
    }
  }
}

std::unique_ptr<WorkerSet::Lease> WorkerSet::TakeForHedge(
    const std::vector<bool>& avoid) {
  MutexLock lock(&mutex_);
  std::optional<size_t> index = Choose(avoid, Trials::kNone);
  if (!index.has_value()) index = Choose(avoid, Trials::kIdle);
  return index.has_value() ? LeaseOf(*index) : nullptr;
}

std::unique_ptr<WorkerSet::Lease> WorkerSet::LeaseOf(size_t index) {
  ++workers_[index].steps_in_flight;
  return std::make_unique<Lease>(this, index, *workers_[index].limits);
}

std::optional<size_t> WorkerSet::Choose(const std::vector<bool>& avoid,
                                        Trials trials) {
  std::optional<size_t> best;
  for (size_t i = 0; i < workers_.size(); ++i) {
    const size_t index = (next_in_turn_ + i) % workers_.size();
    const Worker& worker = workers_[index];
    if (worker.state != State::kReady || avoid[index]) continue;
    if (worker.trial > 0 &&
        (trials == Trials::kNone ||
         (trials == Trials::kIdle && worker.steps_in_flight > 0))) {
      continue;
    }
    if (!best.has_value() ||
        worker.steps_in_flight < workers_[*best].steps_in_flight) {
      best = index;
    }
  }
  if (best.has_value()) next_in_turn_ = (*best + 1) % workers_.size();
  return best;
}

void WorkerSet::Release(size_t index) {
  MutexLock lock(&mutex_);
  --workers_[index].steps_in_flight;
}

bool WorkerSet::All(State state) const {
  return std::all_of(workers_.begin(), workers_.end(),
                     [&](const Worker& w) { return w.state == state; });
}

bool WorkerSet::Any(State state) const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [&](const Worker& w) { return w.state == state; });
}

std::string WorkerSet::Errors() const {
  std::string errors;
  for (const Worker& worker : workers_) {
    if (worker.state == State::kReady) continue;
    absl::StrAppend(
        &errors, errors.empty() ? "" : "; ", worker.link->address(), ": ",
        worker.error.ok() ? "no answer yet" : worker.error.message());
  }
  return errors;
}

}  // namespace engram
