#ifndef ENGRAM_CORE_BASE_STATUS_MACROS_H_
#define ENGRAM_CORE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status of `expr` from the enclosing function unless it is OK.
#define ENGRAM_RETURN_IF_ERROR(expr)                                  \
  do {                                                                \
    if (absl::Status engram_status_ = (expr); !engram_status_.ok()) { \
      return engram_status_;                                          \
    }                                                                 \
  } while (false)

// ENGRAM_ASSIGN_OR_RETURN(auto x, Make()): assigns the value, or returns the
// status from the enclosing function.
#define ENGRAM_ASSIGN_OR_RETURN(lhs, expr) \
  ENGRAM_ASSIGN_OR_RETURN_IMPL_(           \
      ENGRAM_STATUS_CONCAT_(engram_statusor_, __LINE__), lhs, expr)

#define ENGRAM_ASSIGN_OR_RETURN_IMPL_(temp, lhs, expr) \
  auto temp = (expr);                                  \
  if (!temp.ok()) return std::move(temp).status();     \
  lhs = *std::move(temp)

#define ENGRAM_STATUS_CONCAT_(a, b) ENGRAM_STATUS_CONCAT_INNER_(a, b)
#define ENGRAM_STATUS_CONCAT_INNER_(a, b) a##b

#endif  // ENGRAM_CORE_BASE_STATUS_MACROS_H_
