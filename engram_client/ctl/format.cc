#include "engram_client/ctl/format.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace engram::ctl {
namespace {

constexpr size_t kShortVersionDigits = 12;
constexpr size_t kNamesShown = 8;

// Columns that the text takes on a terminal, where UTF-8 continuation bytes
// take none.
size_t WidthOf(absl::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (c & 0xC0) != 0x80; });
}

}  // namespace

std::string WithCommas(uint64_t number) {
  std::string text = absl::StrCat(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string ShortVersion(absl::string_view version) {
  if (version.empty()) return "-";
  return Printable(version.substr(0, kShortVersionDigits));
}

std::string Printable(absl::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  return line;
}

std::string JoinNames(absl::Span<const std::string> names) {
  const size_t shown = std::min(names.size(), kNamesShown);
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", Printable(names[i]));
  }
  if (shown < names.size()) {
    absl::StrAppend(&text, " and ", names.size() - shown,
                    names.size() - shown == 1 ? " other" : " others");
  }
  return text;
}

std::string ShortDuration(absl::Duration time) {
  const double seconds = absl::ToDoubleSeconds(time);
  if (seconds <= 120) return absl::StrFormat("%.0f s", std::ceil(seconds));
  if (seconds <= 7200) {
    return absl::StrFormat("%.0f min", std::ceil(seconds / 60));
  }
  return absl::StrFormat("%.1f h", seconds / 3600);
}

std::string FormatTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], WidthOf(row[i]));
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&line, "  ", row[i]);
      line.append(widths[i] - WidthOf(row[i]), ' ');
    }
    absl::StripTrailingAsciiWhitespace(&line);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace engram::ctl
