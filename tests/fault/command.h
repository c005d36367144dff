#ifndef ENGRAM_TESTS_FAULT_COMMAND_H_
#define ENGRAM_TESTS_FAULT_COMMAND_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace engram::fault {

// A line that switches a fault: "NAME ARGUMENT ...", words apart by spaces.
class Command {
 public:
  explicit Command(absl::string_view line);

  const std::string& name() const { return name_; }  // empty: an empty line

  // INVALID_ARGUMENT unless there are as many, named in the message.
  absl::Status Expect(const std::vector<absl::string_view>& arguments) const;

  // INVALID_ARGUMENT: not there, or not of this kind.
  absl::StatusOr<double> Share(size_t index) const;  // [0, 1]
  absl::StatusOr<bool> OnOff(size_t index) const;    // "on" or "off"
  absl::StatusOr<uint64_t> Number(size_t index, uint64_t max) const;
  absl::StatusOr<std::string> Word(size_t index) const;

 private:
  std::string name_;
  std::vector<std::string> arguments_;
};

// The line that answers a command: "ok", "ok WHAT" or "error: WHY".
std::string AnswerTo(const absl::StatusOr<std::string>& result);

}  // namespace engram::fault

#endif  // ENGRAM_TESTS_FAULT_COMMAND_H_
