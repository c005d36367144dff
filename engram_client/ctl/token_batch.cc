#include "engram_client/ctl/token_batch.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "engram_client/ctl/tensor_file.h"

namespace engram::ctl {
namespace {

bool FitsTokenId(int64_t token) {
  return token >= 0 && token <= std::numeric_limits<uint32_t>::max();
}

absl::Status CheckLiveTokens(const TokenBatch& batch) {
  for (uint64_t s = 0; s < batch.sequences; ++s) {
    for (uint64_t p = 0; p < batch.length; ++p) {
      const int64_t token = batch.tokens[s * batch.length + p];
      if (FitsTokenId(token) || !batch.live(s, p)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor tokens: sequence ", s, ", position ", p, " is ", token,
          ", which is not a token id (dead positions belong in mask)"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenBatch> ReadTokenBatch(const SafetensorsFile& file) {
  ENGRAM_ASSIGN_OR_RETURN(const TensorView tokens,
                          FindTensor(file, "tokens", {"I64"}, 2));
  TokenBatch batch;
  batch.sequences = tokens.shape[0];
  batch.length = tokens.shape[1];
  if (tokens.element_count() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor tokens has no tokens: its shape is ", ShapeText(tokens.shape)));
  }
  ENGRAM_ASSIGN_OR_RETURN(batch.tokens, CopyTensor<int64_t>(tokens));
  if (file.tensors().contains("mask")) {
    ENGRAM_ASSIGN_OR_RETURN(const TensorView mask,
                            FindTensor(file, "mask", {"BOOL"}, 2));
    ENGRAM_RETURN_IF_ERROR(CheckShape(mask, tokens.shape));
    ENGRAM_ASSIGN_OR_RETURN(batch.mask, CopyTensor<uint8_t>(mask));
  }
  ENGRAM_RETURN_IF_ERROR(CheckLiveTokens(batch));
  return batch;
}

StepSequence SequenceOf(const TokenBatch& batch, uint64_t sequence,
                        const Chunk& chunk, uint32_t max_lookback) {
  const uint64_t lookback = std::min<uint64_t>(chunk.start, max_lookback);
  StepSequence step;
  step.start_position = chunk.start;
  for (uint64_t p = chunk.start - lookback; p < chunk.start + chunk.count;
       ++p) {
    const int64_t token = batch.tokens[sequence * batch.length + p];
    const bool is_new = p >= chunk.start;
    (is_new ? step.token_ids : step.lookback)
        .push_back(FitsTokenId(token) ? static_cast<uint32_t>(token) : 0);
    if (batch.mask.empty()) continue;
    (is_new ? step.mask : step.lookback_mask)
        .push_back(batch.live(sequence, p) ? 1 : 0);
  }
  return step;
}

}  // namespace engram::ctl
