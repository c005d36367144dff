#ifndef ENGRAM_TESTS_TESTING_GOLDEN_STEP_H_
#define ENGRAM_TESTS_TESTING_GOLDEN_STEP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute/block/engram_block.h"
#include "compute/gate/gate.h"
#include "core/model/checkpoint.h"
#include "core/model/token_map.h"
#include "tests/testing/golden_file.h"
#include "tests/testing/step_run.h"

namespace engram::test {

// One layer of a golden file.
struct GoldenLayer {
  size_t index = 0;
  LayerId id = {};
  StreamDtype dtype = StreamDtype::kBf16;
  std::vector<RowId> row_ids;
  std::vector<std::byte> streams_in;
};

// A checkpoint and the golden file that the oracle wrote of it: the steps that
// any block over the checkpoint must compute, and the comparisons of them.
//
// Immutable. Thread safety: all methods may be called concurrently.
class GoldenStep {
 public:
  // The errors of both readers.
  static absl::StatusOr<std::unique_ptr<const GoldenStep>> Open(
      const std::string& golden_path, const std::string& checkpoint_dir);

  const GoldenFile& golden() const { return golden_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  const TokenMap& token_map() const { return token_map_; }
  const EngramConfig& config() const { return checkpoint_.config(); }
  absl::Span<const GoldenLayer> layers() const { return layers_; }

  // Packed rows in the order of `ids`.
  absl::StatusOr<std::vector<std::byte>> Fetch(
      const GoldenLayer& layer, absl::Span<const RowId> ids) const;

  // The step of positions [first, first + count) of the golden file. An empty
  // mask means that all of them live.
  absl::StatusOr<StepInput> Input(const GoldenLayer& layer, size_t first,
                                  size_t count,
                                  absl::Span<const uint8_t> mask) const;
  // All positions at once, with the golden's mask.
  absl::StatusOr<StepInput> Input(const GoldenLayer& layer) const;
  // All positions by `block`, in pieces of `step` positions.
  absl::StatusOr<StepResult> RunBy(size_t step, const EngramBlock& block,
                                   const GoldenLayer& layer) const;
  // What the golden file says: streams, gate, kv (of all positions).
  StepResult Wanted(const GoldenLayer& layer) const;

  // The comparisons of step_compare.h with what `block` gives for one layer.
  // CheckKv projects dead positions too (the golden has them) and returns the
  // share that is equal.
  absl::StatusOr<double> CheckKv(const EngramBlock& block,
                                 const GoldenLayer& layer) const;
  absl::Status CheckOwnKv(const EngramBlock& block,
                          const GoldenLayer& layer) const;
  absl::Status CheckWanted(const EngramBlock& block,
                           const GoldenLayer& layer) const;
  absl::Status CheckDead(const EngramBlock& block,
                         const GoldenLayer& layer) const;
  absl::Status CheckContribution(const EngramBlock& block,
                                 const GoldenLayer& layer) const;
  // Steps of 1, 3 and 5 positions give the bits of one step of all.
  absl::Status CheckAnyBatch(const EngramBlock& block,
                             const GoldenLayer& layer) const;

 private:
  GoldenStep(GoldenFile golden, Checkpoint checkpoint, TokenMap token_map)
      : golden_(std::move(golden)),
        checkpoint_(std::move(checkpoint)),
        token_map_(std::move(token_map)) {}

  void AddLayer(LayerId id);
  std::vector<std::byte> StreamBytesOf(LayerId id,
                                       const std::string& name) const;

  const GoldenFile golden_;
  const Checkpoint checkpoint_;
  const TokenMap token_map_;
  std::vector<GoldenLayer> layers_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_TESTING_GOLDEN_STEP_H_
