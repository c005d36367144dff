#ifndef ENGRAM_CORE_BASE_FLAG_CHECKS_H_
#define ENGRAM_CORE_BASE_FLAG_CHECKS_H_

#include <CLI/CLI.hpp>
#include <cstdint>

namespace engram {

// A whole number of [min, max] in decimal digits without leading zeros. CLI11's
// own conversion takes 014 for 12 and -1 for 2^64 - 1.
CLI::Validator WholeNumber(uint64_t min, uint64_t max);

// A number of seconds of [min, max]; CLI::Range lets nan through.
CLI::Validator Seconds(double min, double max);

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_FLAG_CHECKS_H_
