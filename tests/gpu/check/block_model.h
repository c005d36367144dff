#ifndef ENGRAM_TESTS_GPU_CHECK_BLOCK_MODEL_H_
#define ENGRAM_TESTS_GPU_CHECK_BLOCK_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compute/block/engram_block.h"
#include "core/base/thread_pool.h"
#include "core/model/checkpoint.h"
#include "core/model/token_map.h"
#include "tests/testing/temp_dir.h"

namespace engram::gpu_check {

// A checkpoint and the CPU's block over it.
class BlockModel {
 public:
  static absl::StatusOr<std::unique_ptr<const BlockModel>> Open(
      const std::string& dir, ThreadPool* pool) {
    return OpenIn(nullptr, dir, pool);
  }
  // A made-up checkpoint of a preset, in a directory that goes with it.
  static absl::StatusOr<std::unique_ptr<const BlockModel>> Make(
      absl::string_view preset, uint64_t seed, ThreadPool* pool);

  const Checkpoint& checkpoint() const { return checkpoint_; }
  const TokenMap& token_map() const { return token_map_; }
  const EngramBlock& cpu_block() const { return *cpu_block_; }

 private:
  BlockModel(std::unique_ptr<test::TempDir> own, Checkpoint checkpoint,
             TokenMap token_map)
      : own_(std::move(own)),
        checkpoint_(std::move(checkpoint)),
        token_map_(std::move(token_map)) {}

  // `own` is the directory if it is to go with the model, else null.
  static absl::StatusOr<std::unique_ptr<const BlockModel>> OpenIn(
      std::unique_ptr<test::TempDir> own, const std::string& dir,
      ThreadPool* pool);

  const std::unique_ptr<test::TempDir> own_;
  const Checkpoint checkpoint_;
  const TokenMap token_map_;
  std::unique_ptr<const EngramBlock> cpu_block_;
};

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_BLOCK_MODEL_H_
