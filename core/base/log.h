#ifndef ENGRAM_CORE_BASE_LOG_H_
#define ENGRAM_CORE_BASE_LOG_H_

#include <spdlog/spdlog.h>

#include "absl/strings/string_view.h"

namespace engram {

// Sends spdlog's default logger to stderr (stdout belongs to the one-line
// contract of each binary) with time, level and `program`. Call once in main.
// Logging itself is spdlog::info(...), warn(...), error(...).
void InitLogging(absl::string_view program);

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_LOG_H_
