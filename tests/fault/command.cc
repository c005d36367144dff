#include "tests/fault/command.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"

namespace engram::fault {
namespace {

absl::Status Bad(absl::string_view word, const std::string& wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", word, "' is not ", wanted));
}

}  // namespace

Command::Command(absl::string_view line)
    : arguments_(absl::StrSplit(line, ' ', absl::SkipEmpty())) {
  if (arguments_.empty()) return;
  name_ = arguments_.front();
  arguments_.erase(arguments_.begin());
}

absl::Status Command::Expect(
    const std::vector<absl::string_view>& arguments) const {
  if (arguments_.size() == arguments.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(arguments_.size(), " arguments, wanted is: ", name_, " ",
                   absl::StrJoin(arguments, " ")));
}

absl::StatusOr<std::string> Command::Word(size_t index) const {
  if (index < arguments_.size()) return arguments_[index];
  return absl::InvalidArgumentError(
      absl::StrCat(name_, " has no argument ", index));
}

absl::StatusOr<double> Command::Share(size_t index) const {
  ENGRAM_ASSIGN_OR_RETURN(const std::string word, Word(index));
  double share = 0;
  // Written so that nan is refused too.
  if (absl::SimpleAtod(word, &share) && share >= 0 && share <= 1) return share;
  return Bad(word, "a share of 0 .. 1");
}

absl::StatusOr<bool> Command::OnOff(size_t index) const {
  ENGRAM_ASSIGN_OR_RETURN(const std::string word, Word(index));
  if (word == "on") return true;
  if (word == "off") return false;
  return Bad(word, "on or off");
}

absl::StatusOr<uint64_t> Command::Number(size_t index, uint64_t max) const {
  ENGRAM_ASSIGN_OR_RETURN(const std::string word, Word(index));
  uint64_t number = 0;
  if (absl::SimpleAtoi(word, &number) && number <= max) return number;
  return Bad(word, absl::StrCat("a number of 0 .. ", max));
}

std::string AnswerTo(const absl::StatusOr<std::string>& result) {
  if (!result.ok()) return absl::StrCat("error: ", result.status().message());
  return result->empty() ? "ok" : absl::StrCat("ok ", *result);
}

}  // namespace engram::fault
