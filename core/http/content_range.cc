#include "core/http/content_range.h"

#include <charconv>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace engram {
namespace {

constexpr absl::string_view kUnit = "bytes ";
constexpr size_t kShownBytes = 64;  // of text from outside

// Takes a number off the front.
bool TakeNumber(absl::string_view& text, uint64_t& number) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

}  // namespace

absl::StatusOr<ContentRange> ParseContentRange(absl::string_view text) {
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t file_bytes = 0;
  bool sound = absl::StartsWithIgnoreCase(rest, kUnit);
  if (sound) {
    rest.remove_prefix(kUnit.size());
    sound = TakeNumber(rest, first) && absl::ConsumePrefix(&rest, "-") &&
            TakeNumber(rest, last) && absl::ConsumePrefix(&rest, "/") &&
            TakeNumber(rest, file_bytes) && rest.empty() && first <= last &&
            last < file_bytes;
  }
  if (!sound) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Content-Range \"", absl::CHexEscape(text.substr(0, kShownBytes)),
        "\" is not of the form \"bytes FIRST-LAST/SIZE\""));
  }
  return ContentRange{{first, last + 1}, file_bytes};
}

}  // namespace engram
