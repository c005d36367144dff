#ifndef ENGRAM_TESTS_BENCH_TCP_WIRE_H_
#define ENGRAM_TESTS_BENCH_TCP_WIRE_H_

#include <cstdint>

// What the plain TCP peers and their contestants say to each other:
//
//   request:  | u32 count, perhaps with kBytesOnly | u32 index | ... |
//   reply:    | row | row | ...                                     |
//
// in the byte order of the machine that both run on. A request that breaks
// this, or asks for a row that is not there, ends the connection.

namespace engram::bench {

// Asks for as many bytes, whatever they are: nothing is gathered.
inline constexpr uint32_t kBytesOnly = uint32_t{1} << 31;

inline constexpr uint32_t kMaxTcpRows = 1 << 20;

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_TCP_WIRE_H_
