#include "core/model/safetensors.h"

#include <bit>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/safetensors_header.h"
#include "core/model/strict_json.h"

namespace engram {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are used as they stand in the file");

struct DtypeEntry {
  absl::string_view name;
  size_t bytes;
};

constexpr DtypeEntry kDtypes[] = {
    {"F8_E4M3", 1}, {"F8_E8M0", 1}, {"F8_E5M2", 1}, {"BF16", 2},
    {"F16", 2},     {"F32", 4},     {"F64", 8},     {"I8", 1},
    {"I16", 2},     {"I32", 4},     {"I64", 8},     {"U8", 1},
    {"U16", 2},     {"U32", 4},     {"U64", 8},     {"BOOL", 1}};

// The header is copied before it is parsed: a parser could not be left in the
// middle when the file is truncated.
absl::StatusOr<std::string> CopyHeader(const MappedFile& file) {
  const absl::Span<const std::byte> bytes = file.bytes();
  if (bytes.size() < kSafetensorsPrefixBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a file of ", bytes.size(),
                     " bytes is too short for a safetensors header"));
  }
  uint64_t size = 0;
  ENGRAM_RETURN_IF_ERROR(
      file.Guarded([&] { std::memcpy(&size, bytes.data(), sizeof(size)); }));
  ENGRAM_RETURN_IF_ERROR(CheckSafetensorsHeaderSize(size, bytes.size()));
  std::string text(size, '\0');
  ENGRAM_RETURN_IF_ERROR(file.Guarded([&] {
    std::memcpy(text.data(), bytes.data() + kSafetensorsPrefixBytes, size);
  }));
  return text;
}

}  // namespace

size_t DtypeBytes(absl::string_view dtype) {
  for (const DtypeEntry& entry : kDtypes) {
    if (entry.name == dtype) return entry.bytes;
  }
  return 0;
}

uint64_t TensorView::element_count() const {
  const absl::StatusOr<uint64_t> count = ElementCount(shape);
  ENGRAM_CHECK(count.ok());  // the header's check refused others
  return *count;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  ENGRAM_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                          MappedFile::Open(path));
  return Parse(std::move(file));
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Parse(
    std::shared_ptr<const MappedFile> file) {
  const absl::StatusOr<std::string> text = CopyHeader(*file);
  if (!text.ok()) return Annotate(text.status(), file->path());
  const absl::Span<const std::byte> data =
      file->bytes().subspan(kSafetensorsPrefixBytes + text->size());
  absl::StatusOr<SafetensorsHeader> header =
      ParseSafetensorsHeader(*text, data.size());
  if (!header.ok()) return Annotate(header.status(), file->path());

  SafetensorsFile parsed;
  parsed.path_ = file->path();
  parsed.metadata_ = std::move(header->metadata);
  for (auto& [name, entry] : header->tensors) {
    parsed.tensors_.emplace_hint(
        parsed.tensors_.end(), name,
        TensorView{.name = name,
                   .dtype = std::move(entry.dtype),
                   .shape = std::move(entry.shape),
                   .bytes = data.subspan(entry.begin, entry.end - entry.begin),
                   .file = file});
  }
  return parsed;
}

absl::StatusOr<TensorView> SafetensorsFile::Find(absl::string_view name) const {
  const auto found = tensors_.find(std::string(name));
  if (found == tensors_.end()) {
    return absl::NotFoundError(
        absl::StrCat(path_, " has no tensor ", Quoted(name)));
  }
  if (DtypeBytes(found->second.dtype) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": tensor ", Quoted(name), " has the dtype ",
                     Quoted(found->second.dtype), ", which is not supported"));
  }
  return found->second;
}

}  // namespace engram
