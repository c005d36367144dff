#include "tests/gpu/check/block_model.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "tests/testing/checkpoint_maker.h"

namespace engram::gpu_check {

absl::StatusOr<std::unique_ptr<const BlockModel>> BlockModel::OpenIn(
    std::unique_ptr<test::TempDir> own, const std::string& dir,
    ThreadPool* pool) {
  ENGRAM_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(dir));
  ENGRAM_ASSIGN_OR_RETURN(
      TokenMap token_map,
      TokenMap::Load(absl::StrCat(dir, "/", kTokenMapFileName),
                     checkpoint.config()));
  auto model = absl::WrapUnique(new BlockModel(
      std::move(own), std::move(checkpoint), std::move(token_map)));
  ENGRAM_ASSIGN_OR_RETURN(
      model->cpu_block_,
      EngramBlock::Create(model->checkpoint_, model->token_map_, pool));
  return std::unique_ptr<const BlockModel>(std::move(model));
}

absl::StatusOr<std::unique_ptr<const BlockModel>> BlockModel::Make(
    absl::string_view preset, uint64_t seed, ThreadPool* pool) {
  auto dir = std::make_unique<test::TempDir>();
  test::CheckpointMaker(preset, seed).Write(dir->path());
  const std::string path = dir->path();
  return OpenIn(std::move(dir), path, pool);
}

}  // namespace engram::gpu_check
