#include "engram_client/ctl/tensor_file.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"

namespace engram::ctl {

std::string ShapeText(absl::Span<const uint64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::StatusOr<TensorView> FindTensor(
    const SafetensorsFile& file, absl::string_view name,
    std::initializer_list<absl::string_view> dtypes, size_t rank) {
  ENGRAM_ASSIGN_OR_RETURN(TensorView tensor, file.Find(name));
  if (std::find(dtypes.begin(), dtypes.end(), tensor.dtype) == dtypes.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", name, " is ", tensor.dtype, ", not ",
                     absl::StrJoin(dtypes, " or ")));
  }
  if (tensor.shape.size() != rank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", name, " has the shape ", ShapeText(tensor.shape), ", but ",
        rank, " dimensions are wanted"));
  }
  return tensor;
}

absl::Status CheckShape(const TensorView& tensor,
                        absl::Span<const uint64_t> shape) {
  if (absl::MakeConstSpan(tensor.shape) == shape) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tensor ", tensor.name, " has the shape ",
                   ShapeText(tensor.shape), ", not ", ShapeText(shape)));
}

std::string LayerTensorName(uint32_t layer_id, absl::string_view what) {
  return absl::StrCat("layers.", layer_id, ".", what);
}

absl::Status WriteTensorFile(const std::string& path,
                             absl::Span<const OutputTensor> tensors) {
  std::vector<TensorSpec> specs;
  specs.reserve(tensors.size());
  for (const OutputTensor& tensor : tensors) specs.push_back(tensor.spec);
  ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsWriter> writer,
                          SafetensorsWriter::Create(path, std::move(specs)));
  for (const OutputTensor& tensor : tensors) {
    ENGRAM_RETURN_IF_ERROR(
        Annotate(writer->Append(tensor.bytes), tensor.spec.name));
  }
  return writer->Finish();
}

}  // namespace engram::ctl
