#ifndef ENGRAM_TESTS_UNIT_COMPUTE_PROJECT_FAKE_CUBLASLT_H_
#define ENGRAM_TESTS_UNIT_COMPUTE_PROJECT_FAKE_CUBLASLT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compute/project/cublaslt_api.h"

namespace engram::test {

// What the fake has seen, and how it behaves.
struct FakeCublasLtState {
  int objects = 0;  // made and not destroyed
  uint32_t alignment = 256;
  uint64_t workspace_bytes = 1;
  std::vector<uint64_t> chosen_for;  // tokens of each call of the heuristic
  uint64_t used = 0;                 // tokens that the last algorithm is for
  uint64_t refused_tokens = 0;       // the check fails for so many
  bool no_algorithm = false;
};

// cuBLASLt on the CPU: bf16 matrices in host memory, products in double.
// Starts from a fresh state. One test at a time.
CublasLtApi FakeCublasLt();
FakeCublasLtState& FakeCublasLtStateNow();

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_COMPUTE_PROJECT_FAKE_CUBLASLT_H_
