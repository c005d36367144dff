#ifndef ENGRAM_CORE_MODEL_SAFETENSORS_H_
#define ENGRAM_CORE_MODEL_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/mapped_file.h"

namespace engram {

// A tensor of a mapped safetensors file. `bytes` points into the mapping:
// read it inside file->Guarded.
struct TensorView {
  std::string name;
  std::string dtype;  // safetensors name: "BF16", "F8_E4M3", ...
  std::vector<uint64_t> shape;
  absl::Span<const std::byte> bytes;
  std::shared_ptr<const MappedFile> file;

  uint64_t element_count() const;
};

// Bytes of one element, 0 for a dtype this reader does not know.
size_t DtypeBytes(absl::string_view dtype);

// What one file's header says, parsed and checked in full before anything is
// used. File: u64 little-endian header size, that many bytes of JSON, data.
//
// Hostile input is safe: a header past the end or above 100 MB, JSON that is
// not an object of tensors, names that stand twice, offsets that descend,
// overlap, leave gaps or pass the end, a shape whose product overflows or does
// not make the byte count are INVALID_ARGUMENT naming file and tensor. A
// tensor of an unknown dtype is an error only when asked for.
//
// Immutable. Thread safety: all methods may be called concurrently.
class SafetensorsFile {
 public:
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);
  static absl::StatusOr<SafetensorsFile> Parse(
      std::shared_ptr<const MappedFile> file);

  // NOT_FOUND names the file and the tensor.
  absl::StatusOr<TensorView> Find(absl::string_view name) const;
  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const {
    return metadata_;
  }

 private:
  std::string path_;
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Copies a whole tensor out of its mapping (small tensors, tests, tools).
// T must have the size of one element; DATA_LOSS if the file was truncated.
template <typename T>
absl::StatusOr<std::vector<T>> CopyTensor(const TensorView& tensor);

// What SafetensorsWriter will write: name, dtype and shape in file order.
struct TensorSpec {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
};

// Writes a safetensors file front to back without holding its data: all specs
// first, then every tensor's bytes in the same order, in pieces of any size.
// The file appears under its name only when Finish succeeds.
class SafetensorsWriter {
 public:
  static absl::StatusOr<std::unique_ptr<SafetensorsWriter>> Create(
      const std::string& path, std::vector<TensorSpec> specs,
      std::map<std::string, std::string> metadata = {});
  virtual ~SafetensorsWriter() = default;

  // Bytes that follow what was appended before, across tensors.
  // OUT_OF_RANGE: more than the specs hold. Else errors of the file system.
  virtual absl::Status Append(absl::Span<const std::byte> bytes) = 0;
  // FAILED_PRECONDITION: fewer bytes than the specs hold.
  virtual absl::Status Finish() = 0;
};

}  // namespace engram

#include "core/model/safetensors_inl.h"

#endif  // ENGRAM_CORE_MODEL_SAFETENSORS_H_
