#include "core/http/content_range.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace engram {
namespace {

constexpr absl::string_view kUnit = "bytes ";
constexpr size_t kShownBytes = 64;  // of text from outside

// Takes a number and the character `after` it off the front.
bool TakeNumber(absl::string_view& text, char after, uint64_t& number) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  size_t at = 0;
  number = 0;
  for (; at < text.size() && absl::ascii_isdigit(text[at]); ++at) {
    const auto digit = static_cast<uint64_t>(text[at] - '0');
    if (number > (kMax - digit) / 10) return false;
    number = number * 10 + digit;
  }
  if (at == 0) return false;
  if (after == '\0') return at == text.size();
  if (at == text.size() || text[at] != after) return false;
  text.remove_prefix(at + 1);
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
    sound = TakeNumber(rest, '-', first) && TakeNumber(rest, '/', last) &&
            TakeNumber(rest, '\0', file_bytes) && first <= last &&
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
