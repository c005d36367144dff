#ifndef ENGRAM_CORE_MODEL_SAFETENSORS_HEADER_H_
#define ENGRAM_CORE_MODEL_SAFETENSORS_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace engram {

// Limits of the format: the size is checked before anything is read.
inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr size_t kMaxTensorDimensions = 64;
inline constexpr uint64_t kSafetensorsPrefixBytes = 8;  // the header's size

struct SafetensorsEntry {
  std::string dtype;
  std::vector<uint64_t> shape;
  uint64_t begin = 0;  // bytes, counted from the end of the header
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;
};

// INVALID_ARGUMENT: a header of `size` bytes, as the prefix of a file of
// `file_bytes` says, is above the limit or passes the file's end.
// REQUIRES: the file has a prefix.
absl::Status CheckSafetensorsHeaderSize(uint64_t size, uint64_t file_bytes);

// Parses the JSON of a header in one pass and checks it against the
// `data_bytes` that follow it: every byte of data belongs to one tensor.
// INVALID_ARGUMENT names the tensor.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view json,
                                                         uint64_t data_bytes);

// Product of `shape`, or INVALID_ARGUMENT when it exceeds 64 bits.
absl::StatusOr<uint64_t> ElementCount(absl::Span<const uint64_t> shape);

// Bytes of a tensor of known dtype, or INVALID_ARGUMENT when it exceeds 64
// bits. REQUIRES: DtypeBytes(dtype) > 0.
absl::StatusOr<uint64_t> TensorBytes(absl::string_view dtype,
                                     absl::Span<const uint64_t> shape);

// "[2, 3]"
std::string ShapeText(absl::Span<const uint64_t> shape);

}  // namespace engram

#endif  // ENGRAM_CORE_MODEL_SAFETENSORS_HEADER_H_
