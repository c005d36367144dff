#ifndef ENGRAM_ENGRAM_CLIENT_COMPUTE_CLIENT_H_
#define ENGRAM_ENGRAM_CLIENT_COMPUTE_CLIENT_H_

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

// Runs Engram steps on compute workers. Steps are pure, so one that a worker
// could not take (down, draining, overloaded) is sent to another, within the
// deadline.
//
// Thread safety: all methods may be called concurrently. Steps must be gone
// before the client is destroyed.
class ComputeClient {
 public:
  struct Options {
    std::vector<std::string> addresses;  // host:port or unix:PATH
    absl::Duration connect_timeout = absl::Seconds(10);
  };

  // Waits until one worker has told what it computes.
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
    // Waits for the worker's word that the whole step is done.
    virtual absl::Status Finish() = 0;
  };
  // Waits for a ready worker, not for its answer: what is wrong with the step
  // is said by Layer.
  virtual absl::StatusOr<std::unique_ptr<Step>> Begin(
      std::vector<StepSequence> sequences, StepDtype dtype, StepReturn what,
      std::vector<LayerId> layers, absl::Time deadline) = 0;
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_COMPUTE_CLIENT_H_
