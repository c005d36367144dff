#include "engram_client/ctl/load_steps.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/progress.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "engram_client/ctl/load_layers.h"
#include "engram_client/ctl/load_random.h"

namespace engram::ctl {
namespace {

absl::Status CheckTokens(const std::vector<LoadSize>& sizes,
                         const ModelInfo& model) {
  const uint64_t tokens = LargestSize(sizes);
  if (tokens <= model.max_tokens_per_step) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--tokens has a step of ", tokens,
                   " tokens, the workers take ", model.max_tokens_per_step));
}

uint64_t ResultBytes(const ModelInfo& model, StepReturn what) {
  if (what == StepReturn::kStreams) {
    return StreamBytes(model, StepDtype::kBf16);
  }
  return model.config.hc_mult * sizeof(float) +
         model.config.dim * sizeof(uint16_t);
}

absl::Status CheckMemory(const StepLoad::Options& options,
                         const ModelInfo& model, size_t layers) {
  const uint64_t streams = layers * StreamBytes(model, StepDtype::kBf16);
  const uint64_t results = layers * ResultBytes(model, options.what);
  uint64_t known_tokens = 0;
  for (const LoadSize& size : options.sizes) {
    known_tokens += size.size * options.inputs;
  }
  const uint64_t slot_tokens = LargestSize(options.sizes) * options.slots;
  const uint64_t bytes =
      known_tokens * (streams + results) + slot_tokens * results;
  if (bytes <= options.max_memory_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(known_tokens, " tokens of inputs with their answers and ",
                   slot_tokens, " tokens in flight need ", FormatBytes(bytes),
                   ", more than --max-memory-mb allows (",
                   FormatBytes(options.max_memory_bytes),
                   "): give fewer --max-in-flight, --inputs or --tokens"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepLoad>> StepLoad::Create(
    const Options& options, ComputeClient* client) {
  const ModelInfo& model = client->model();
  ENGRAM_ASSIGN_OR_RETURN(std::vector<LayerId> layers,
                          ChooseLayers(model.layers, options.layers));
  ENGRAM_RETURN_IF_ERROR(CheckTokens(options.sizes, model));
  ENGRAM_RETURN_IF_ERROR(CheckMemory(options, model, layers.size()));
  return std::unique_ptr<StepLoad>(
      new StepLoad(options, std::move(layers), client));
}

StepLoad::StepLoad(const Options& options, std::vector<LayerId> layers,
                   ComputeClient* client)
    : options_(options),
      layers_(std::move(layers)),
      client_(*client),
      model_(client->model()),
      slots_(options.slots),
      pool_({.thread_count = options.slots, .max_queued = options.slots}) {
  LoadRandom random(options.seed);
  for (const LoadSize& size : options.sizes) {
    for (size_t i = 0; i < options.inputs; ++i) {
      known_.push_back(
          {DrawStepInput(model_, layers_.size(), i, size.size, random.Next()),
           StepResults::Make(model_, layers_.size(), options.what, size.size)});
    }
  }
  for (Slot& slot : slots_) {
    slot.results = StepResults::Make(model_, layers_.size(), options.what,
                                     LargestSize(options.sizes));
  }
}

absl::StatusOr<std::optional<LoadMismatch>> StepLoad::Learn(
    absl::Duration timeout) {
  StepResults& again = slots_[0].results;
  for (Known& known : known_) {
    for (StepResults* results : {&known.wanted, &again}) {
      results->Poison(known.input.tokens());
      ENGRAM_RETURN_IF_ERROR(Annotate(
          RunStep(known.input, *results, absl::Now() + timeout),
          absl::StrCat("the first step of ", known.input.tokens(), " tokens")));
    }
    const std::optional<LoadMismatch> mismatch =
        CompareSteps(model_, layers_, known.input, known.wanted, again);
    if (mismatch.has_value()) return mismatch;
  }
  return std::nullopt;
}

std::vector<std::pair<std::string, uint64_t>> StepLoad::client_counts() const {
  const ComputeClient::Stats stats = client_.stats();
  return {{"steps", stats.steps},
          {"retries", stats.retries},
          {"held_retries", stats.held_retries},
          {"hedges", stats.hedges},
          {"hedges_won", stats.hedges_won},
          {"refused_hedges", stats.refused_hedges},
          {"ejections", stats.ejections}};
}

void StepLoad::Prepare(size_t slot, const LoadCall& call) {
  Slot& state = slots_[slot];
  LoadRandom random(call.seed);
  state.known = &known_[call.size_index * options_.inputs +
                        random.Below(options_.inputs)];
  state.compare =
      options_.sample_step > 0 && random.Below(options_.sample_step) == 0;
  if (state.compare) state.results.Poison(state.known->input.tokens());
}

void StepLoad::Start(size_t slot, absl::Time deadline, Done done) {
  // A queue of as many as there are slots is never full.
  const bool queued = pool_.TryAdd([this, slot, deadline,
                                    done = std::move(done)]() mutable {
    done(RunStep(slots_[slot].known->input, slots_[slot].results, deadline));
  });
  ENGRAM_CHECK(queued);
}

LoadAnswer StepLoad::Finish(size_t slot, const absl::Status& status) {
  LoadAnswer answer;
  if (!status.ok()) return answer;
  const Slot& state = slots_[slot];
  answer.units = state.known->input.tokens();
  answer.bytes =
      answer.units * layers_.size() * ResultBytes(model_, options_.what);
  if (!state.compare) return answer;
  answer.units_checked = answer.units;
  answer.mismatch = CompareSteps(model_, layers_, state.known->input,
                                 state.known->wanted, state.results);
  return answer;
}

absl::Status StepLoad::RunStep(const StepInput& input, StepResults& results,
                               absl::Time deadline) {
  const std::vector<StepLayerIo> ios =
      results.Io(model_, options_.what, layers_, input);
  if (options_.mode == StepMode::kApply) {
    return client_.Apply({input.sequence}, StepDtype::kBf16, options_.what, ios,
                         deadline);
  }
  ENGRAM_ASSIGN_OR_RETURN(
      const std::unique_ptr<ComputeClient::Step> step,
      client_.Begin({input.sequence}, StepDtype::kBf16, options_.what, layers_,
                    {.deadline = deadline}));
  for (const StepLayerIo& io : ios) ENGRAM_RETURN_IF_ERROR(step->Layer(io));
  return step->Finish();
}

}  // namespace engram::ctl
