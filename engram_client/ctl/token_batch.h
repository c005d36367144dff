#ifndef ENGRAM_ENGRAM_CLIENT_CTL_TOKEN_BATCH_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_TOKEN_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/safetensors.h"
#include "engram_client/compute_client.h"
#include "engram_client/ctl/chunks.h"

namespace engram::ctl {

// `tokens` I64 and `mask` BOOL of a file: sequences of one length.
struct TokenBatch {
  uint64_t sequences = 0;
  uint64_t length = 0;
  std::vector<int64_t> tokens;  // [sequences, length], as the file has them
  std::vector<uint8_t> mask;    // as tokens, 0 = dead; empty: all live

  bool live(uint64_t sequence, uint64_t position) const {
    return mask.empty() || mask[sequence * length + position] != 0;
  }
};

// INVALID_ARGUMENT names tensor, value and limit: another dtype or shape, no
// tokens, a mask of another shape, a live token that is not a 32-bit id (a
// dead one may be anything). NOT_FOUND: no `tokens`.
absl::StatusOr<TokenBatch> ReadTokenBatch(const SafetensorsFile& file);

// One sequence's share of the step that runs `chunk`, with the lookback that
// the contract asks for: min(chunk.start, max_lookback) tokens, oldest first.
// Masks only where the batch has one; dead ids that do not fit become 0.
StepSequence SequenceOf(const TokenBatch& batch, uint64_t sequence,
                        const Chunk& chunk, uint32_t max_lookback);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_TOKEN_BATCH_H_
