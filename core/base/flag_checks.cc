#include "core/base/flag_checks.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace engram {

CLI::Validator WholeNumber(uint64_t min, uint64_t max) {
  const auto check = [min, max](const std::string& text) -> std::string {
    uint64_t value = 0;
    const bool digits = !text.empty() && std::all_of(text.begin(), text.end(),
                                                     absl::ascii_isdigit);
    const bool plain = digits && (text.size() == 1 || text[0] != '0');
    if (plain && absl::SimpleAtoi(text, &value) && value >= min &&
        value <= max) {
      return "";
    }
    return absl::StrCat(text, " is no whole number from ", min, " to ", max);
  };
  return CLI::Validator(check, absl::StrCat("from ", min, " to ", max));
}

CLI::Validator Seconds(double min, double max) {
  const auto check = [min, max](const std::string& text) -> std::string {
    double value = 0;
    if (absl::SimpleAtod(text, &value) && value >= min && value <= max) {
      return "";
    }
    return absl::StrCat(text, " is no number of seconds from ", min, " to ",
                        max);
  };
  return CLI::Validator(check, absl::StrCat("from ", min, " to ", max));
}

}  // namespace engram
