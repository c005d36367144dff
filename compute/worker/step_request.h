#ifndef ENGRAM_COMPUTE_WORKER_STEP_REQUEST_H_
#define ENGRAM_COMPUTE_WORKER_STEP_REQUEST_H_

#include <google/protobuf/repeated_field.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "compute/block/engram_block.h"
#include "compute/gate/gate.h"
#include "compute/hash/ngram_hash.h"
#include "compute/worker/caller_id.h"
#include "core/base/ids.h"
#include "engram/v1/compute.pb.h"

namespace engram {

enum class StepOutput { kStreams, kContribution };

// What a caller asks of a step, as it came over the wire.
struct StepSpec {
  // From the step's arrival until the layer's rows are to be there.
  struct LayerTimeout {
    LayerId layer;
    absl::Duration timeout;
  };

  CallerId caller;
  std::string version;  // empty: whatever is served
  google::protobuf::RepeatedPtrField<v1::Sequence> sequences;
  v1::StreamDtype dtype = v1::STREAM_DTYPE_UNSPECIFIED;
  v1::ReturnKind return_kind = v1::RETURN_KIND_UNSPECIFIED;
  std::vector<LayerId> layers;
  std::vector<LayerTimeout> layer_timeouts;
};

// A step whose tokens, layers and kinds were checked against the model: what
// follows relies on it without looking again. Immutable once made.
class StepRequest {
 public:
  // INVALID_ARGUMENT, TOO_LARGE or UNKNOWN_LAYER; the message names the
  // sequence, the value and the limit. `spec.version` and `spec.caller` are
  // not looked at.
  static absl::StatusOr<StepRequest> Create(const EngramBlock& block,
                                            uint64_t max_tokens, StepSpec spec);

  size_t sequence_count() const { return sequences_.size(); }
  // Spans point into this request.
  TokenChunk sequence(size_t index) const;

  StreamDtype dtype() const { return dtype_; }
  StepOutput output() const { return output_; }
  // Indices into the model's layers, ascending: the order of the fetches.
  absl::Span<const size_t> layer_indices() const { return layer_indices_; }
  // Of each of them: when its rows are to be there, from the step's arrival.
  // InfiniteDuration: within the step's time.
  absl::Span<const absl::Duration> rows_timeouts() const {
    return rows_timeouts_;
  }

  // Of all sequences, one after another.
  uint64_t tokens() const { return tokens_; }
  // One byte a token, empty: all live.
  absl::Span<const uint8_t> mask() const { return mask_; }
  uint64_t live_tokens() const { return LiveBefore(tokens_); }
  // Live tokens among the first `token`: where a run's rows start.
  uint64_t LiveBefore(uint64_t token) const {
    return mask_.empty() ? token : live_before_[token];
  }

 private:
  StepRequest() = default;
  absl::Status TakeSequences(
      const EngramBlock& block, uint64_t max_tokens,
      google::protobuf::RepeatedPtrField<v1::Sequence> sequences);
  absl::Status TakeKinds(v1::StreamDtype dtype, v1::ReturnKind return_kind);
  absl::Status TakeLayers(const EngramBlock& block,
                          absl::Span<const LayerId> layers);
  absl::Status TakeLayerTimeouts(
      const EngramBlock& block,
      absl::Span<const StepSpec::LayerTimeout> timeouts);
  void JoinMasks();

  google::protobuf::RepeatedPtrField<v1::Sequence> sequences_;
  StreamDtype dtype_ = StreamDtype::kBf16;
  StepOutput output_ = StepOutput::kStreams;
  std::vector<size_t> layer_indices_;
  std::vector<absl::Duration> rows_timeouts_;
  uint64_t tokens_ = 0;
  std::vector<uint8_t> mask_;
  std::vector<uint32_t> live_before_;  // [tokens + 1], empty where mask_ is
};

// Bytes of one token's streams.
uint64_t TokenStreamBytes(const EngramConfig& config, StreamDtype dtype);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_STEP_REQUEST_H_
