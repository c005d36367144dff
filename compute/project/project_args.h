#ifndef ENGRAM_COMPUTE_PROJECT_PROJECT_ARGS_H_
#define ENGRAM_COMPUTE_PROJECT_PROJECT_ARGS_H_

#include <cstdint>

namespace engram {

// One product for the GPU. Pointers are the device's, those that are read
// aligned to 16 bytes; the layouts are those of fragment_layout.h.
struct ProjectArgs {
  const uint8_t* codes = nullptr;    // PackedCodeCount(out, in)
  const float* scales = nullptr;     // PackedScaleCount(out, in)
  const uint16_t* tokens = nullptr;  // FragmentCount(token_count, in)
  uint16_t* kv = nullptr;            // out: bf16 [token_count, out], to 8 bytes
  uint32_t in = 0;                   // a multiple of 32
  uint32_t out = 0;
  uint32_t token_count = 0;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_PROJECT_PROJECT_ARGS_H_
