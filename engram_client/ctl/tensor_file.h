#ifndef ENGRAM_ENGRAM_CLIENT_CTL_TENSOR_FILE_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_TENSOR_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/model/safetensors.h"

namespace engram::ctl {

// "[2, 16]"
std::string ShapeText(absl::Span<const uint64_t> shape);

// The tensor `name`, when its dtype is one of `dtypes` and it has `rank`
// dimensions. NOT_FOUND, or INVALID_ARGUMENT saying what it is instead.
absl::StatusOr<TensorView> FindTensor(
    const SafetensorsFile& file, absl::string_view name,
    std::initializer_list<absl::string_view> dtypes, size_t rank);

// INVALID_ARGUMENT unless the tensor has exactly this shape.
absl::Status CheckShape(const TensorView& tensor,
                        absl::Span<const uint64_t> shape);

// "layers.14.row_ids"
std::string LayerTensorName(uint32_t layer_id, absl::string_view what);

// A tensor to write; `bytes` are the caller's.
struct OutputTensor {
  TensorSpec spec;
  absl::Span<const std::byte> bytes;
};

template <typename T>
absl::Span<const std::byte> BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()),
          values.size() * sizeof(T)};
}

// Writes one file; on any error no file of this name appears or changes.
absl::Status WriteTensorFile(const std::string& path,
                             absl::Span<const OutputTensor> tensors);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_TENSOR_FILE_H_
