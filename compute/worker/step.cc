#include "compute/worker/step.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compute/block/row_source.h"
#include "compute/worker/metrics.h"
#include "compute/worker/step_engine.h"
#include "compute/worker/step_layer.h"
#include "core/base/check.h"

namespace engram {

Step::Step(StepEngine& engine, CallerId caller, StepRequest request,
           absl::Time begun, absl::Time deadline,
           std::shared_ptr<StepObserver> observer)
    : engine_(engine),
      caller_(std::move(caller)),
      request_(std::move(request)),
      begun_(begun),
      deadline_(deadline),
      first_deadline_(deadline),
      token_bytes_(TokenStreamBytes(engine.block().config(), request_.dtype())),
      observer_(std::move(observer)),
      tokens_left_(request_.tokens() * request_.layer_indices().size()) {
  for (size_t i = 0; i < request_.layer_indices().size(); ++i) {
    auto layer = std::make_unique<Layer>();
    layer->index = request_.layer_indices()[i];
    layer->id = engine.block().layout().layers()[layer->index].layer_id;
    layer->rows_deadline = deadline;
    if (request_.live_tokens() > 0) {  // else there are no rows to come
      layer->rows_deadline =
          std::min(deadline, begun + request_.rows_timeouts()[i]);
    }
    first_deadline_ = std::min(first_deadline_, layer->rows_deadline);
    layer->received.resize(request_.tokens());
    layers_.push_back(std::move(layer));
  }
}

Step::~Step() = default;

uint64_t Step::prefetched_bytes() const {
  return engine_.PrefetchedBytes(request_);
}

// ---- the rows ----

void Step::Start() {
  engine_.RunOnHashThread(caller_, [self = shared_from_this()] {
    if (!self->Enter()) return;
    self->StartFetches();
    self->Leave();
  });
}

void Step::StartFetches() {
  for (const std::unique_ptr<Layer>& layer : layers_) {
    if (request_.live_tokens() == 0) {
      OnRows(*layer, absl::OkStatus());
      continue;
    }
    if (!StillWanted()) return;
    HashLayer(*layer);
    if (!StillWanted()) return;
    FetchLayer(*layer);
  }
}

void Step::HashLayer(Layer& layer) {
  const absl::Time start = engine_.clock().Now();
  const NgramHasher& hasher = engine_.block().hasher();
  const size_t columns = hasher.columns();
  layer.row_ids.resize(request_.tokens() * columns);
  size_t begin = 0;
  for (size_t i = 0; i < request_.sequence_count(); ++i) {
    const TokenChunk chunk = request_.sequence(i);
    const size_t count = chunk.tokens.size() * columns;
    hasher.Hash(layer.index, chunk,
                absl::MakeSpan(layer.row_ids).subspan(begin, count));
    begin += count;
  }
  if (!request_.mask().empty()) {
    // Dead positions' rows are not fetched: close the gaps they leave.
    auto out = layer.row_ids.begin();
    for (uint64_t token = 0; token < request_.tokens(); ++token) {
      if (request_.mask()[token] == 0) continue;
      const auto from = layer.row_ids.begin() + token * columns;
      out = std::copy(from, from + columns, out);
    }
    layer.row_ids.erase(out, layer.row_ids.end());
  }
  engine_.metrics().StageTook(StepStage::kHash, engine_.clock().Now() - start);
}

void Step::FetchLayer(Layer& layer) {
  RowSource& source = engine_.row_source();
  auto rows = engine_.block().AllocateRows(layer.row_ids.size() *
                                           source.row_format().row_bytes());
  if (!rows.ok()) {
    Fail(OverloadedError(rows.status().message()));
    return;
  }
  layer.rows = *std::move(rows);
  {
    MutexLock lock(&mutex_);
    layer.fetch_started = engine_.clock().Now();
  }
  std::unique_ptr<RowFetch> fetch = source.Fetch(
      layer.id, layer.row_ids, layer.rows.bytes(), layer.rows_deadline,
      [self = shared_from_this(), &layer](absl::Status status) {
        self->OnRows(layer, std::move(status));
      });
  MutexLock lock(&mutex_);
  layer.fetch = std::move(fetch);
}

void Step::OnRows(Layer& layer, absl::Status status) {
  if (!Enter()) return;
  bool compute = false;
  absl::Duration fetch_time;
  {
    MutexLock lock(&mutex_);
    layer.rows_arrived = engine_.clock().Now();
    layer.rows_ready = status.ok();
    layer.fetch_over = true;
    fetch_time = layer.rows_arrived - layer.fetch_started;
    compute = TakeComputeTurn(layer);
  }
  if (absl::IsDeadlineExceeded(status) && layer.rows_deadline < deadline_) {
    FailLate(layer, status.message());
  } else if (!status.ok()) {
    Fail(std::move(status));
  } else if (request_.live_tokens() > 0) {
    engine_.metrics().StageTook(StepStage::kFetch, fetch_time);
  }
  if (compute) ScheduleCompute(layer);
  Leave();
}

void Step::FailLate(const Layer& layer, absl::string_view why) {
  const bool ended_by_it = Fail(absl::DeadlineExceededError(absl::StrCat(
      "the rows of layer ", ToInt(layer.id), " were not there within ",
      absl::FormatDuration(layer.rows_deadline - begun_), ", the time for them",
      why.empty() ? "" : ": ", why)));
  if (ended_by_it) engine_.metrics().RowsLate(layer.id);
}

// ---- the end ----

bool Step::Fail(absl::Status status) {
  ENGRAM_CHECK(!status.ok());
  std::vector<RowFetch*> fetches;
  {
    MutexLock lock(&mutex_);
    if (ended_) return false;
    ended_ = true;
    status_ = std::move(status);
    ++inside_;
    for (const std::unique_ptr<Layer>& layer : layers_) {
      if (layer->fetch != nullptr && !layer->fetch_over) {
        fetches.push_back(layer->fetch.get());
      }
    }
  }
  for (RowFetch* const fetch : fetches) fetch->Cancel();
  Leave();
  return true;
}

void Step::ExpireAt(absl::Time now) {
  if (deadline_ <= now) return Expire();
  const Layer* late = nullptr;
  {
    MutexLock lock(&mutex_);
    for (const std::unique_ptr<Layer>& layer : layers_) {
      if (layer->rows_ready || now < layer->rows_deadline) continue;
      late = layer.get();
      break;
    }
  }
  if (late != nullptr) FailLate(*late, "");
}

void Step::Expire() {
  std::string missing = MissingStreams();
  if (missing.empty()) missing = MissingRows();
  Fail(absl::DeadlineExceededError(absl::StrCat(
      "the step was not done within ", absl::FormatDuration(deadline_ - begun_),
      missing.empty() ? "" : ": ", missing)));
}

std::string Step::MissingRows() {
  MutexLock lock(&mutex_);
  for (const std::unique_ptr<Layer>& layer : layers_) {
    if (layer->rows_ready) continue;
    return absl::StrCat("the rows of layer ", ToInt(layer->id),
                        " are still being fetched");
  }
  return "";
}

bool Step::StillWanted() {
  const absl::Time now = engine_.clock().Now();
  if (now >= first_deadline_) ExpireAt(now);
  MutexLock lock(&mutex_);
  return !ended_;
}

bool Step::Enter() {
  MutexLock lock(&mutex_);
  if (ended_) return false;
  ++inside_;
  return true;
}

void Step::Leave() {
  {
    MutexLock lock(&mutex_);
    --inside_;
    if (!ended_ || inside_ > 0 || finishing_) return;
    finishing_ = true;
  }
  engine_.RunOnHashThread(caller_,
                          [self = shared_from_this()] { self->Finish(); });
}

void Step::Finish() {
  std::vector<std::unique_ptr<RowFetch>> fetches;
  std::deque<PendingChunk> pending;
  std::shared_ptr<StepObserver> observer;
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    for (const std::unique_ptr<Layer>& layer : layers_) {
      fetches.push_back(std::move(layer->fetch));
      std::move(layer->pending.begin(), layer->pending.end(),
                std::back_inserter(pending));
      layer->pending.clear();
    }
    observer = std::move(observer_);
    status = status_;
  }
  fetches.clear();  // waits until nothing writes to the rows
  for (const std::unique_ptr<Layer>& layer : layers_) {
    layer->rows = {};
    layer->row_ids = {};
  }
  pending.clear();
  engine_.Ended(*this, status);
  observer->OnEnd(status);
}

}  // namespace engram
