#ifndef ENGRAM_TESTS_TESTING_STATUS_MATCHERS_H_
#define ENGRAM_TESTS_TESTING_STATUS_MATCHERS_H_

#include <gmock/gmock.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace engram::test {

inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// A status or StatusOr that is OK; shows its message when not.
MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// A status or StatusOr of `code` whose message matches, e.g.
// IsError(absl::StatusCode::kNotFound, HasSubstr("layers.1")).
MATCHER_P2(IsError, code, message, "") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code &&
         ::testing::Matches(message)(std::string(StatusOf(arg).message()));
}

}  // namespace engram::test

#endif  // ENGRAM_TESTS_TESTING_STATUS_MATCHERS_H_
