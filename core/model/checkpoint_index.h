#ifndef ENGRAM_CORE_MODEL_CHECKPOINT_INDEX_H_
#define ENGRAM_CORE_MODEL_CHECKPOINT_INDEX_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/model/safetensors.h"

namespace engram {

inline constexpr char kIndexFileName[] = "model.safetensors.index.json";
inline constexpr char kSingleFileName[] = "model.safetensors";
// DeepSeek-V4.1-Flash has 100k tensors and 10 MB of index.
inline constexpr size_t kMaxIndexBytes = 100'000'000;

// The weight_map of an index: tensor name -> file name. INVALID_ARGUMENT: not
// an index, a tensor that stands twice, a file name that is not one of the
// index's own directory.
absl::StatusOr<std::map<std::string, std::string>> ParseCheckpointIndex(
    absl::string_view json);

// Finds tensors in the files of `dir`, by its index or, without one, in
// model.safetensors. Only files that the index gives for `names` are opened;
// among those no name may stand in two. The result is in the order of `names`.
//
// NOT_FOUND: the index or the file it names has no such tensor, or there is no
// such file. INVALID_ARGUMENT: a tensor in two files, or in another than the
// index says. Messages name file and tensor.
absl::StatusOr<std::vector<TensorView>> FindTensors(
    const std::string& dir, absl::Span<const std::string> names);

}  // namespace engram

#endif  // ENGRAM_CORE_MODEL_CHECKPOINT_INDEX_H_
