#include "core/model/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/model/safetensors.h"
#include "core/model/strict_json.h"

namespace engram {
namespace {

using nlohmann::json;

constexpr absl::string_view kMetadataKey = "__metadata__";

// Takes the header straight from the parser, with no tree between, so that
// the memory of a hostile header stays within a few times its size. Its depth
// is bounded by the grammar:
//
//   {"__metadata__": {KEY: STRING, ...},
//    NAME: {"dtype": STRING, "shape": [N, ...], "data_offsets": [N, N]}, ...}
class HeaderReader final : public nlohmann::json_sax<json> {
 public:
  bool key(string_t& key) override {
    switch (place_) {
      case Place::kFile:
        name_ = std::move(key);
        if (name_ == kMetadataKey ? seen_metadata_
                                  : header_.tensors.count(name_) > 0) {
          return FailWith(
              absl::StrCat("tensor ", Quoted(name_), " stands twice"));
        }
        return true;
      case Place::kMetadata:
        key_ = std::move(key);
        return header_.metadata.count(key_) == 0 ||
               FailWith(
                   absl::StrCat("metadata ", Quoted(key_), " stands twice"));
      default:
        key_ = std::move(key);
        return TakeField();
    }
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      header_.metadata.emplace(std::move(key_), std::move(value));
      return true;
    }
    if (place_ != Place::kTensor || key_ != "dtype") return Misplaced("string");
    entry_.dtype = std::move(value);
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kShape && place_ != Place::kOffsets) {
      return Misplaced("number");
    }
    const bool is_shape = place_ == Place::kShape;
    std::vector<uint64_t>& numbers = is_shape ? entry_.shape : offsets_;
    const size_t limit = is_shape ? kMaxTensorDimensions : 2;
    if (numbers.size() == limit) {
      return FailTensor(absl::StrCat("more than ", limit, " numbers in ",
                                     is_shape ? "shape" : "data_offsets"));
    }
    numbers.push_back(value);
    return true;
  }

  bool start_object(size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kFile;
      return true;
    }
    if (place_ != Place::kFile) return Misplaced("object");
    if (name_ == kMetadataKey) {
      seen_metadata_ = true;
      place_ = Place::kMetadata;
      return true;
    }
    entry_ = {};
    offsets_.clear();
    seen_dtype_ = seen_shape_ = seen_offsets_ = false;
    place_ = Place::kTensor;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kFile) {
      place_ = Place::kEnd;
      return true;
    }
    const bool was_tensor = place_ == Place::kTensor;
    place_ = Place::kFile;
    if (!was_tensor) return true;
    if (!seen_dtype_ || !seen_shape_ || !seen_offsets_) {
      return FailTensor("needs dtype, shape and data_offsets");
    }
    if (offsets_.size() != 2) {
      return FailTensor(
          absl::StrCat("data_offsets has ", offsets_.size(), " numbers of 2"));
    }
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    header_.tensors.emplace(std::move(name_), std::move(entry_));
    return true;
  }

  bool start_array(size_t) override {
    if (place_ == Place::kTensor && key_ == "shape") {
      place_ = Place::kShape;
    } else if (place_ == Place::kTensor && key_ == "data_offsets") {
      place_ = Place::kOffsets;
    } else {
      return Misplaced("array");
    }
    return true;
  }
  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }

  bool null() override { return Misplaced("null"); }
  bool boolean(bool) override { return Misplaced("boolean"); }
  bool number_integer(number_integer_t value) override {
    return Misplaced(absl::StrCat("negative number ", value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return Misplaced(absl::StrCat("number ", Quoted(text),
                                  " (not a whole number below 2^64)"));
  }
  bool binary(binary_t&) override { return false; }  // text has none

  bool parse_error(size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    status_ = JsonSyntaxError(error);
    return false;
  }

  absl::StatusOr<SafetensorsHeader> Take() && {
    if (!status_.ok()) return status_;
    return std::move(header_);
  }

 private:
  enum class Place {
    kStart,
    kFile,
    kMetadata,
    kTensor,
    kShape,
    kOffsets,
    kEnd
  };

  // key_ is a field of a tensor, each allowed once.
  bool TakeField() {
    bool* const seen = key_ == "dtype"          ? &seen_dtype_
                       : key_ == "shape"        ? &seen_shape_
                       : key_ == "data_offsets" ? &seen_offsets_
                                                : nullptr;
    if (seen == nullptr) {
      return FailTensor(absl::StrCat("unknown field ", Quoted(key_)));
    }
    if (std::exchange(*seen, true)) {
      return FailTensor(absl::StrCat("field ", key_, " stands twice"));
    }
    return true;
  }

  bool Misplaced(absl::string_view what) {
    if (place_ == Place::kStart) {
      return FailWith(absl::StrCat("the header is not an object: ", what));
    }
    return FailTensor(absl::StrCat("unexpected ", what));
  }
  bool FailTensor(absl::string_view message) {
    return FailWith(absl::StrCat("tensor ", Quoted(name_), ": ", message));
  }
  bool FailWith(absl::string_view message) {
    status_ = absl::InvalidArgumentError(message);
    return false;
  }

  Place place_ = Place::kStart;
  std::string name_;  // of the tensor
  std::string key_;   // inside the tensor or the metadata
  SafetensorsEntry entry_;
  std::vector<uint64_t> offsets_;
  bool seen_metadata_ = false;
  bool seen_dtype_ = false;
  bool seen_shape_ = false;
  bool seen_offsets_ = false;
  SafetensorsHeader header_;
  absl::Status status_;
};

absl::Status CheckSize(const std::string& name, const SafetensorsEntry& entry) {
  const auto error = [&](absl::string_view message) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", Quoted(name), ": ", message));
  };
  if (entry.begin > entry.end) {
    return error(absl::StrCat("data_offsets descend from ", entry.begin, " to ",
                              entry.end));
  }
  const bool known = DtypeBytes(entry.dtype) > 0;
  const absl::StatusOr<uint64_t> size =
      known ? TensorBytes(entry.dtype, entry.shape) : ElementCount(entry.shape);
  if (!size.ok()) return error(size.status().message());
  if (known && *size != entry.end - entry.begin) {
    return error(absl::StrCat(
        "shape ", ShapeText(entry.shape), " of ", entry.dtype, " makes ", *size,
        " bytes, data_offsets span ", entry.end - entry.begin));
  }
  return absl::OkStatus();
}

// Every byte of data belongs to exactly one tensor.
absl::Status CheckCoverage(const SafetensorsHeader& header,
                           uint64_t data_bytes) {
  using Item = std::pair<const std::string, SafetensorsEntry>;
  std::vector<const Item*> order;
  order.reserve(header.tensors.size());
  for (const Item& item : header.tensors) order.push_back(&item);
  std::sort(order.begin(), order.end(), [](const Item* a, const Item* b) {
    return std::pair(a->second.begin, a->second.end) <
           std::pair(b->second.begin, b->second.end);
  });
  uint64_t covered = 0;
  for (const Item* item : order) {
    const auto& [name, entry] = *item;
    if (entry.end > data_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", Quoted(name), " ends at byte ", entry.end, " of ",
          data_bytes, " bytes of data: the file is truncated or corrupt"));
    }
    if (entry.begin != covered) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", Quoted(name), " begins at byte ", entry.begin,
          entry.begin < covered ? " and overlaps the one before, which ends at "
                                : " and leaves a gap after ",
          covered));
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the tensors end at byte ",
                                                   covered, " of ", data_bytes,
                                                   " bytes of data"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSafetensorsHeaderSize(uint64_t size, uint64_t file_bytes) {
  if (size > kMaxSafetensorsHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat("header of ", size,
                                                   " bytes, the limit is ",
                                                   kMaxSafetensorsHeaderBytes));
  }
  if (size > file_bytes - kSafetensorsPrefixBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("header of ", size, " bytes passes the end of a file of ",
                     file_bytes, " bytes"));
  }
  return absl::OkStatus();
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    absl::string_view json_text, uint64_t data_bytes) {
  HeaderReader reader;
  ENGRAM_RETURN_IF_ERROR(RunSaxParser(json_text, reader));
  ENGRAM_ASSIGN_OR_RETURN(SafetensorsHeader header, std::move(reader).Take());
  for (const auto& [name, entry] : header.tensors) {
    ENGRAM_RETURN_IF_ERROR(CheckSize(name, entry));
  }
  ENGRAM_RETURN_IF_ERROR(CheckCoverage(header, data_bytes));
  return header;
}

absl::StatusOr<uint64_t> ElementCount(absl::Span<const uint64_t> shape) {
  uint64_t count = 1;
  for (const uint64_t size : shape) {
    if (__builtin_mul_overflow(count, size, &count)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape ", ShapeText(shape), " has more than 2^64 elements"));
    }
  }
  return count;
}

absl::StatusOr<uint64_t> TensorBytes(absl::string_view dtype,
                                     absl::Span<const uint64_t> shape) {
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t count, ElementCount(shape));
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, uint64_t{DtypeBytes(dtype)}, &bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", ShapeText(shape), " of ", dtype,
                     " has more than 2^64 bytes"));
  }
  return bytes;
}

std::string ShapeText(absl::Span<const uint64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace engram
