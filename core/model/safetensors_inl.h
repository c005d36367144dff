#ifndef ENGRAM_CORE_MODEL_SAFETENSORS_INL_H_
#define ENGRAM_CORE_MODEL_SAFETENSORS_INL_H_

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/safetensors.h"

namespace engram {

template <typename T>
absl::StatusOr<std::vector<T>> CopyTensor(const TensorView& tensor) {
  if (DtypeBytes(tensor.dtype) != sizeof(T)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", tensor.name, " is ", tensor.dtype, ", not of ",
                     sizeof(T), "-byte elements"));
  }
  std::vector<T> values(tensor.element_count());
  if (values.empty()) return values;
  ENGRAM_RETURN_IF_ERROR(tensor.file->Guarded([&] {
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  }));
  return values;
}

}  // namespace engram

#endif  // ENGRAM_CORE_MODEL_SAFETENSORS_INL_H_
