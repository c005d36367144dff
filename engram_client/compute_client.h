#ifndef ENGRAM_ENGRAM_CLIENT_COMPUTE_CLIENT_H_
#define ENGRAM_ENGRAM_CLIENT_COMPUTE_CLIENT_H_

#include <prometheus/registry.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/config.h"

namespace engram {

// One sequence's share of a step, as engram.v1.Sequence has it.
struct StepSequence {
  uint64_t start_position = 0;
  std::vector<uint32_t> token_ids;
  std::vector<uint32_t> lookback;      // min(start_position, max_ngram_size-1)
  std::vector<uint8_t> mask;           // 0 = dead; empty: all live
  std::vector<uint8_t> lookback_mask;  // as mask
};

enum class StepDtype { kBf16, kF32 };
enum class StepReturn { kStreams, kContribution };

// Streams of one layer in, its results out. Spans are the caller's and must
// stay until the call has returned; outputs may not overlap inputs, which may
// have to be sent again. Unused outputs stay empty.
struct StepLayerIo {
  LayerId layer;
  absl::Span<const std::byte> streams;  // [tokens, hc, dim]
  absl::Span<std::byte> streams_out;    // kStreams: as streams
  absl::Span<float> gate;               // kContribution: [tokens, hc]
  absl::Span<uint16_t> value;           // kContribution: bf16 [tokens, dim]
};

struct ModelInfo {
  std::string version;
  EngramConfig config;
  std::vector<LayerId> layers;
  // What each worker takes that had answered when the client was created.
  uint64_t max_tokens_per_step = 0;
  uint64_t max_chunk_bytes = 0;
};

// How a step is run.
struct StepOptions {
  absl::Time deadline = absl::InfiniteFuture();  // for all of it
  // When a layer's rows must be there at the latest; each layer once, of those
  // of the step. A step whose rows are late for one ends with
  // DEADLINE_EXCEEDED, which names the layer. Of no effect on workers to which
  // the step goes after that time.
  std::vector<std::pair<LayerId, absl::Time>> rows_deadlines;
};

// Runs Engram steps on compute workers. Steps are pure, so one that a worker
// could not take (down, draining, overloaded) is sent to another, within the
// deadline. One whose worker is silent for longer than nearly all that were as
// large took lately is sent to a second worker too: the first good answer
// counts, and the step goes on where it came from. A worker that is silent time
// and again is left until it has told its model again, and then tried with
// single steps.
//
// Thread safety: all methods may be called concurrently. Steps must be gone
// before the client is destroyed.
class ComputeClient {
 public:
  struct Options {
    std::vector<std::string> addresses;  // host:port or unix:PATH
    absl::Duration connect_timeout = absl::Seconds(10);
    // How long an Apply or a layer may take before it goes to a second worker
    // too, while too few are known. In any case half of the time that is left
    // is the most.
    absl::Duration first_hedge_delay = absl::Seconds(1);
    // Where the engram_compute_client_* metrics go; null: they only make
    // stats().
    std::shared_ptr<prometheus::Registry> metrics;
  };

  // Waits until one worker has told what it computes.
  // INVALID_ARGUMENT: no address, or an option out of its limits.
  // FAILED_PRECONDITION: workers of different models. UNAVAILABLE: nobody
  // answered in time.
  static absl::StatusOr<std::unique_ptr<ComputeClient>> Create(Options options);
  virtual ~ComputeClient() = default;

  virtual const ModelInfo& model() const = 0;

  // One step by the unary Apply. INVALID_ARGUMENT: sizes that do not fit,
  // or TOO_LARGE for one message (Begin has no such limit); else the worker's
  // errors, with its address. Outputs are unspecified unless OK.
  virtual absl::Status Apply(absl::Span<const StepSequence> sequences,
                             StepDtype dtype, StepReturn what,
                             absl::Span<const StepLayerIo> layers,
                             absl::Time deadline) = 0;

  // A step on a Forward stream. Begin starts the fetch of all layers' rows;
  // Layer is called once for each layer, in any order, when its streams are
  // known, and returns with its results. Layers that have returned stay valid
  // when the step goes on elsewhere. Thread safety: one thread at a time.
  class Step {
   public:
    virtual ~Step() = default;  // cancels what has not ended
    virtual absl::Status Layer(const StepLayerIo& io) = 0;
    // Waits for the worker's word that the whole step is done. All results are
    // there before: a worker that is lost or silent then is no failure.
    virtual absl::Status Finish() = 0;
  };
  // Waits for a ready worker, not for its answer: what is wrong with the step
  // is said by Layer.
  virtual absl::StatusOr<std::unique_ptr<Step>> Begin(
      std::vector<StepSequence> sequences, StepDtype dtype, StepReturn what,
      std::vector<LayerId> layers, const StepOptions& options) = 0;

  // Since the client was created. Retries and hedges together are at most 5% of
  // the steps, and at most 100 at once; a retry beyond that waits, a hedge is
  // left out.
  struct Stats {
    uint64_t steps = 0;
    uint64_t retries = 0;         // sent to the next worker after a failure
    uint64_t held_retries = 0;    // those that waited, the budget being used up
    uint64_t hedges = 0;          // sent to a second worker after silence
    uint64_t hedges_won = 0;      // the step went on there
    uint64_t refused_hedges = 0;  // the budget was used up
    uint64_t ejections = 0;       // times that a worker was left for silence
  };
  virtual Stats stats() const = 0;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_COMPUTE_CLIENT_H_
