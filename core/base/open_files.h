#ifndef ENGRAM_CORE_BASE_OPEN_FILES_H_
#define ENGRAM_CORE_BASE_OPEN_FILES_H_

#include <cstdint>

namespace engram {

// Lets this process open as many files as it may be allowed to, which is often
// far more than it is allowed at first. A connection is one of them.
//
// For mains of servers. Returns the limit that holds now; logs a warning when
// it could not be raised.
uint64_t RaiseOpenFileLimit();

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_OPEN_FILES_H_
