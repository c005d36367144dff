#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/atomic_file.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/safetensors.h"
#include "core/model/safetensors_header.h"
#include "core/model/strict_json.h"

namespace engram {
namespace {

using nlohmann::ordered_json;

// Data that begins at a multiple of this can be used where it is mapped.
constexpr size_t kAlignment = 8;

std::string Dump(const ordered_json& value,
                 ordered_json::error_handler_t on_bad_utf8) {
  return value.dump(-1, ' ', false, on_bad_utf8);
}

// nlohmann drops bad bytes with one handler and replaces them with another.
bool IsUtf8(const std::string& text) {
  using Handler = ordered_json::error_handler_t;
  return Dump(text, Handler::ignore) == Dump(text, Handler::replace);
}

absl::StatusOr<uint64_t> CheckedBytes(const TensorSpec& spec) {
  if (spec.name == "__metadata__" || !IsUtf8(spec.name)) {
    return absl::InvalidArgumentError("not a name for a tensor");
  }
  if (DtypeBytes(spec.dtype) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the dtype ", Quoted(spec.dtype), " is not supported"));
  }
  if (spec.shape.size() > kMaxTensorDimensions) {
    return absl::InvalidArgumentError(absl::StrCat(
        spec.shape.size(), " dimensions, the limit is ", kMaxTensorDimensions));
  }
  return TensorBytes(spec.dtype, spec.shape);
}

struct HeaderText {
  std::string json;
  uint64_t data_bytes = 0;
};

absl::StatusOr<HeaderText> MakeHeader(
    const std::vector<TensorSpec>& specs,
    const std::map<std::string, std::string>& metadata) {
  ordered_json header = ordered_json::object();
  for (const auto& [key, value] : metadata) {
    if (!IsUtf8(key) || !IsUtf8(value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("metadata ", Quoted(key), " is not UTF-8"));
    }
    header["__metadata__"][key] = value;
  }
  uint64_t offset = 0;
  std::set<absl::string_view> names;  // ordered_json finds keys linearly
  for (const TensorSpec& spec : specs) {
    const std::string what = absl::StrCat("tensor ", Quoted(spec.name));
    const absl::StatusOr<uint64_t> bytes = CheckedBytes(spec);
    if (!bytes.ok()) return Annotate(bytes.status(), what);
    if (!names.insert(spec.name).second) {
      return absl::InvalidArgumentError(absl::StrCat(what, " stands twice"));
    }
    const uint64_t begin = offset;
    if (__builtin_add_overflow(offset, *bytes, &offset)) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " ends above 2^64 bytes"));
    }
    ordered_json entry;
    entry["dtype"] = spec.dtype;
    entry["shape"] = spec.shape;
    entry["data_offsets"] = {begin, offset};
    header.emplace(spec.name, std::move(entry));
  }
  HeaderText text = {header.dump(), offset};
  text.json.append(-text.json.size() % kAlignment, ' ');
  if (text.json.size() > kMaxSafetensorsHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("header of ", text.json.size(), " bytes, the limit is ",
                     kMaxSafetensorsHeaderBytes));
  }
  return text;
}

class FileWriter final : public SafetensorsWriter {
 public:
  FileWriter(std::string path, std::unique_ptr<AtomicFile> file,
             uint64_t data_bytes)
      : path_(std::move(path)),
        file_(std::move(file)),
        data_bytes_(data_bytes) {}

  absl::Status Append(absl::Span<const std::byte> bytes) override {
    ENGRAM_RETURN_IF_ERROR(CheckOpen());
    if (bytes.size() > data_bytes_ - written_bytes_) {
      return absl::OutOfRangeError(
          absl::StrCat(path_, ": ", written_bytes_, " bytes and ", bytes.size(),
                       " more, its tensors hold ", data_bytes_));
    }
    ENGRAM_RETURN_IF_ERROR(file_->Append(bytes));
    written_bytes_ += bytes.size();
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    ENGRAM_RETURN_IF_ERROR(CheckOpen());
    if (written_bytes_ < data_bytes_) {
      return absl::FailedPreconditionError(
          absl::StrCat(path_, ": ", written_bytes_,
                       " bytes were written, its tensors hold ", data_bytes_));
    }
    const absl::Status status = file_->Commit();
    file_.reset();
    return status;
  }

 private:
  absl::Status CheckOpen() const {
    if (file_ != nullptr) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(path_, " is finished already"));
  }

  const std::string path_;
  std::unique_ptr<AtomicFile> file_;
  const uint64_t data_bytes_;
  uint64_t written_bytes_ = 0;
};

absl::Span<const std::byte> AsBytes(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

}  // namespace

absl::StatusOr<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Create(
    const std::string& path, std::vector<TensorSpec> specs,
    std::map<std::string, std::string> metadata) {
  const absl::StatusOr<HeaderText> header = MakeHeader(specs, metadata);
  if (!header.ok()) return Annotate(header.status(), path);
  ENGRAM_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file,
                          AtomicFile::Create(path));
  const uint64_t size = header->json.size();
  ENGRAM_RETURN_IF_ERROR(file->Append(AsBytes(&size, sizeof(size))));
  ENGRAM_RETURN_IF_ERROR(
      file->Append(AsBytes(header->json.data(), header->json.size())));
  return std::make_unique<FileWriter>(path, std::move(file),
                                      header->data_bytes);
}

}  // namespace engram
