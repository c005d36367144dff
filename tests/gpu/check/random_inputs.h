#ifndef ENGRAM_TESTS_GPU_CHECK_RANDOM_INPUTS_H_
#define ENGRAM_TESTS_GPU_CHECK_RANDOM_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compute/gate/gate.h"
#include "core/model/row_format.h"

namespace engram::gpu_check {

// Fresh random inputs, a function of their seed alone.
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}

  uint64_t Next();
  uint32_t Below(uint32_t limit) {  // limit > 0
    return static_cast<uint32_t>((Next() >> 32) * limit >> 32);
  }
  bool OneIn(uint32_t n) { return Below(n) == 0; }
  float Normal();

 private:
  const uint64_t seed_;
  uint64_t drawn_ = 0;
};

// What FillRandomArgs puts into memory of this size; the last bytes are of a
// word that is cut short.
void FillRandomBytes(absl::Span<std::byte> bytes, uint64_t seed);

// e4m3 codes without NaN.
std::vector<uint8_t> RandomCodes(Random& random, size_t count);
// Scales of `least` .. `least` + kinds - 1.
std::vector<uint8_t> RandomScales(Random& random, size_t count, uint8_t least,
                                  uint8_t kinds);

// Packed rows as a trained table has them (scales 113 .. 119), and among them,
// one block in 16, such as the tiny-scale rule is for (scales 90 .. 112), and
// rows of zeros.
std::vector<std::byte> RandomRows(Random& random, const RowFormat& format,
                                  size_t rows);

// Streams of normal values, a power of two of -6 .. 6 for each stream of
// `dim`; one stream in 50 is all zeros.
std::vector<std::byte> RandomStreams(Random& random, StreamDtype dtype,
                                     size_t streams, size_t dim);

// kv as a projection gives it: normal values, small keys.
std::vector<uint16_t> RandomKv(Random& random, size_t count);

// Products of weights near one, as the gate's are.
std::vector<float> RandomGateWeights(Random& random, size_t count);

// About one in `n` dead, at least one of each kind where there is room.
std::vector<uint8_t> RandomMask(Random& random, size_t tokens, uint32_t n);

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_RANDOM_INPUTS_H_
