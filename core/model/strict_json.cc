#include "core/model/strict_json.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

using nlohmann::json;

// Builds the tree, and stops at the first thing that is not allowed.
class StrictBuilder final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t&) override {
    return Add(value);
  }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // text has none

  bool start_object(size_t) override { return Open(json::object()); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_array() override { return Close(); }

  bool key(string_t& key) override {
    if (open_.back()->contains(key)) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat("key ", Quoted(key), " stands twice in one object"));
      return false;
    }
    key_ = std::move(key);
    return true;
  }

  bool parse_error(size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    status_ = JsonSyntaxError(error);
    return false;
  }

  absl::StatusOr<json> Take() && {
    if (!status_.ok()) return status_;
    return std::move(root_);
  }

 private:
  bool Add(json value) {
    Place(std::move(value));
    return true;
  }

  // Pointers in open_ stay valid: a container grows only while it is the last.
  json* Place(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    json& slot = parent[key_];
    slot = std::move(value);
    return &slot;
  }

  bool Open(json container) {
    if (open_.size() == kMaxJsonDepth) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat("nested deeper than ", kMaxJsonDepth, " levels"));
      return false;
    }
    open_.push_back(Place(std::move(container)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  json root_;
  std::vector<json*> open_;
  std::string key_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<json> ParseStrictJson(absl::string_view text) {
  StrictBuilder builder;
  ENGRAM_RETURN_IF_ERROR(RunSaxParser(text, builder));
  return std::move(builder).Take();
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kMaxShown = 120;
  const bool cut = text.size() > kMaxShown;
  return absl::StrCat("'", absl::Utf8SafeCHexEscape(text.substr(0, kMaxShown)),
                      cut ? "...'" : "'");
}

absl::Status RunSaxParser(absl::string_view text,
                          nlohmann::json_sax<json>& handler) {
  const size_t zero = text.find('\0');
  if (zero != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("not JSON: a zero byte at ", zero));
  }
  json::sax_parse(text.begin(), text.end(), &handler);
  return absl::OkStatus();
}

absl::Status JsonSyntaxError(const nlohmann::detail::exception& error) {
  constexpr size_t kMaxShown = 200;  // nlohmann repeats the last token in full
  absl::string_view what = error.what();
  what = what.substr(0, kMaxShown);
  return absl::InvalidArgumentError(
      absl::StrCat("not JSON: ", absl::Utf8SafeCHexEscape(what)));
}

absl::StatusOr<const json*> JsonMember(const json& object,
                                       const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("key ", Quoted(key), " is missing"));
  }
  return &*found;
}

absl::StatusOr<std::string> JsonString(const json& object,
                                       const std::string& key) {
  ENGRAM_ASSIGN_OR_RETURN(const json* value, JsonMember(object, key));
  if (!value->is_string()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "key ", Quoted(key), " is a ", value->type_name(), ", not a string"));
  }
  return value->get<std::string>();
}

absl::StatusOr<uint64_t> JsonUint(const json& object, const std::string& key,
                                  uint64_t max) {
  ENGRAM_ASSIGN_OR_RETURN(const json* value, JsonMember(object, key));
  if (!value->is_number_unsigned()) {
    const std::string shown =
        value->is_number() ? value->dump() : value->type_name();
    return absl::InvalidArgumentError(absl::StrCat(
        "key ", Quoted(key), " is ", shown, ", not a whole number"));
  }
  const auto number = value->get<uint64_t>();
  if (number > max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "key ", Quoted(key), " is ", number, ", the limit is ", max));
  }
  return number;
}

}  // namespace engram
