// engramctl hash: token ids to the row ids of every Engram layer.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compute/hash/ngram_hash.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/config.h"
#include "core/model/layout.h"
#include "core/model/safetensors.h"
#include "core/model/token_map.h"
#include "engram_client/ctl/commands.h"
#include "engram_client/ctl/tensor_file.h"
#include "engram_client/ctl/token_batch.h"

namespace engram::ctl {
namespace {

struct HashFlags {
  std::string config;
  std::string token_map;
  std::string in;
  std::string out;
  std::string chunks;
};

// Hashes one chunk of one sequence into its place in [B, T, layers, columns].
absl::Status HashChunk(const NgramHasher& hasher, const TokenBatch& batch,
                       uint64_t sequence, const Chunk& chunk,
                       uint32_t max_lookback, std::vector<int64_t>& hash_ids) {
  const StepSequence step = SequenceOf(batch, sequence, chunk, max_lookback);
  const TokenChunk tokens = {.start_position = step.start_position,
                             .tokens = step.token_ids,
                             .lookback = step.lookback,
                             .mask = step.mask,
                             .lookback_mask = step.lookback_mask};
  ENGRAM_RETURN_IF_ERROR(
      Annotate(hasher.Check(tokens), absl::StrCat("sequence ", sequence)));
  const size_t columns = hasher.columns();
  std::vector<RowId> row_ids(chunk.count * columns);
  for (size_t layer = 0; layer < hasher.layer_count(); ++layer) {
    hasher.Hash(layer, tokens, absl::MakeSpan(row_ids));
    for (uint64_t p = 0; p < chunk.count; ++p) {
      const uint64_t position = sequence * batch.length + chunk.start + p;
      std::copy_n(row_ids.begin() + p * columns, columns,
                  hash_ids.begin() +
                      (position * hasher.layer_count() + layer) * columns);
    }
  }
  return absl::OkStatus();
}

absl::Status WriteHashIds(const std::string& path, const TokenBatch& batch,
                          const NgramHasher& hasher,
                          const std::vector<int64_t>& hash_ids) {
  std::vector<OutputTensor> tensors;
  tensors.push_back({{"tokens", "I64", {batch.sequences, batch.length}},
                     BytesOf(batch.tokens)});
  if (!batch.mask.empty()) {
    tensors.push_back({{"mask", "BOOL", {batch.sequences, batch.length}},
                       BytesOf(batch.mask)});
  }
  tensors.push_back({{"hash_ids",
                      "I64",
                      {batch.sequences, batch.length, hasher.layer_count(),
                       hasher.columns()}},
                     BytesOf(hash_ids)});
  return WriteTensorFile(path, tensors);
}

absl::StatusOr<int> RunHash(const HashFlags& flags) {
  ENGRAM_ASSIGN_OR_RETURN(const EngramConfig config, LoadConfig(flags.config));
  ENGRAM_ASSIGN_OR_RETURN(const EngramLayout layout,
                          EngramLayout::Create(config));
  ENGRAM_ASSIGN_OR_RETURN(const TokenMap token_map,
                          TokenMap::Load(flags.token_map, config));
  ENGRAM_ASSIGN_OR_RETURN(const NgramHasher hasher,
                          NgramHasher::Create(config, layout, token_map));
  ENGRAM_ASSIGN_OR_RETURN(const SafetensorsFile file,
                          SafetensorsFile::Open(flags.in));
  ENGRAM_ASSIGN_OR_RETURN(const TokenBatch batch, ReadTokenBatch(file));
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<Chunk> chunks,
                          ParseChunks(flags.chunks, batch.length));

  std::vector<int64_t> hash_ids(batch.tokens.size() * hasher.layer_count() *
                                hasher.columns());
  for (uint64_t sequence = 0; sequence < batch.sequences; ++sequence) {
    for (const Chunk& chunk : chunks) {
      ENGRAM_RETURN_IF_ERROR(HashChunk(hasher, batch, sequence, chunk,
                                       config.max_lookback(), hash_ids));
    }
  }
  ENGRAM_RETURN_IF_ERROR(WriteHashIds(flags.out, batch, hasher, hash_ids));
  std::printf("hashed %zu tokens to %zu row ids in %zu layers\n",
              batch.tokens.size(), hash_ids.size(), hasher.layer_count());
  return 0;
}

}  // namespace

void AddHash(CLI::App& app, Action& action) {
  auto flags = std::make_shared<HashFlags>();
  CLI::App* command =
      app.add_subcommand("hash", "Token ids to row ids of every Engram layer");
  command->add_option("--config", flags->config, "config.json of the model")
      ->required();
  command->add_option("--token-map", flags->token_map, "engram_token_map.bin")
      ->required();
  command
      ->add_option("--in", flags->in, "tokens I64 [B, T], mask BOOL (optional)")
      ->required();
  command
      ->add_option("--out", flags->out,
                   "hash_ids I64 [B, T, layers, columns], tokens, mask")
      ->required();
  command->add_option("--chunks", flags->chunks,
                      "hash the sequences in chunks of a,b,c tokens");
  command->footer(
      "Example:\n  engramctl hash --config DIR/config.json --token-map "
      "DIR/engram_token_map.bin \\\n    --in tokens.safetensors --out "
      "ids.safetensors --chunks 100,1,1");
  command->callback(
      [flags, &action] { action = [flags] { return RunHash(*flags); }; });
}

}  // namespace engram::ctl
