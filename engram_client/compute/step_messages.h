#ifndef ENGRAM_ENGRAM_CLIENT_COMPUTE_STEP_MESSAGES_H_
#define ENGRAM_ENGRAM_CLIENT_COMPUTE_STEP_MESSAGES_H_

#include <google/protobuf/repeated_field.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engram/v1/compute.pb.h"
#include "engram_client/compute_client.h"

namespace engram {

// What a step's buffers are measured by.
struct StepShape {
  uint64_t tokens = 0;
  uint32_t hc_mult = 0;
  uint32_t dim = 0;
  StepDtype dtype = StepDtype::kBf16;
  StepReturn what = StepReturn::kStreams;

  uint64_t token_stream_bytes() const {
    return uint64_t{hc_mult} * dim * (dtype == StepDtype::kBf16 ? 2 : 4);
  }
  uint64_t token_gate_bytes() const { return hc_mult * sizeof(float); }
  uint64_t token_value_bytes() const { return dim * sizeof(uint16_t); }
};

StepShape ShapeOf(const ModelInfo& model,
                  absl::Span<const StepSequence> sequences, StepDtype dtype,
                  StepReturn what);

// INVALID_ARGUMENT naming layer, size and the size it should be.
absl::Status CheckIo(const StepShape& shape, const StepLayerIo& io);

void FillSequences(absl::Span<const StepSequence> sequences,
                   google::protobuf::RepeatedPtrField<v1::Sequence>* out);
v1::StreamDtype ToProto(StepDtype dtype);
v1::ReturnKind ToProto(StepReturn what);

// Whole tokens in one StepLayer; at least one.
uint64_t TokensPerChunk(const StepShape& shape, uint64_t max_chunk_bytes);

// Copies one answer for tokens [first_token, first_token + token_count) to
// where `io` wants it. INTERNAL: the worker answered something else.
absl::Status CopyResult(const StepShape& shape, const v1::LayerResult& result,
                        uint64_t first_token, uint64_t token_count,
                        const StepLayerIo& io);

absl::StatusOr<ModelInfo> ToModelInfo(const v1::GetModelResponse& response);

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_COMPUTE_STEP_MESSAGES_H_
