#ifndef ENGRAM_COMPUTE_PROJECT_FAST_PRODUCT_H_
#define ENGRAM_COMPUTE_PROJECT_FAST_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/gpu/gpu_types.h"

namespace engram {

// kv = tokens * weights^T, all bf16 and row major, summed in float32 by
// cuBLASLt in an order of its choice, which may change with the number of
// tokens.
//
// Immutable. Thread safety: all methods may be called concurrently.
class FastProduct {
 public:
  // OK: there is a cuBLASLt. NOT_FOUND or FAILED_PRECONDITION say why not.
  static absl::Status Available();

  struct Sizes {
    uint32_t in = 0;
    uint32_t out = 0;
    size_t max_tokens = 0;  // of one product
  };
  // For the selected device. As Available; UNIMPLEMENTED: cuBLASLt has no
  // algorithm for the sizes; INTERNAL names its status.
  static absl::StatusOr<std::unique_ptr<const FastProduct>> Create(
      const Sizes& sizes);
  virtual ~FastProduct() = default;

  // Device addresses, aligned to 16 bytes.
  struct Operands {
    const uint16_t* weights = nullptr;  // [out, in]
    const uint16_t* tokens = nullptr;   // [token_count, in]
    uint16_t* kv = nullptr;             // out: [token_count, out]
    size_t token_count = 0;             // 1 .. max_tokens
  };
  // Puts the product on the stream; may be recorded into a CUDA graph.
  virtual absl::Status Multiply(const Operands& operands,
                                GpuStreamHandle stream) const = 0;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_PROJECT_FAST_PRODUCT_H_
