#ifndef ENGRAM_COMPUTE_PROJECT_CUBLASLT_PRODUCT_H_
#define ENGRAM_COMPUTE_PROJECT_CUBLASLT_PRODUCT_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compute/project/cublaslt_api.h"
#include "compute/project/fast_product.h"

namespace engram {

// The algorithm is chosen at the start, once for each power of two of tokens.
// It gets no workspace: that would be shared by streams, and only products
// with few tokens, which have their own kernel, gain by splitting K.
class CublasLtProduct final : public FastProduct {
 public:
  static absl::StatusOr<std::unique_ptr<const FastProduct>> Create(
      const CublasLtApi& api, const Sizes& sizes);
  ~CublasLtProduct() override;
  CublasLtProduct(const CublasLtProduct&) = delete;
  CublasLtProduct& operator=(const CublasLtProduct&) = delete;

  absl::Status Multiply(const Operands& operands,
                        GpuStreamHandle stream) const override;

 private:
  struct Layouts;

  CublasLtProduct(const CublasLtApi& api, const Sizes& sizes)
      : api_(api), sizes_(sizes) {}

  absl::Status Start();
  absl::StatusOr<Layouts> MakeLayouts(size_t token_count) const;
  absl::StatusOr<cublasLtMatmulAlgo_t> Choose(const Layouts& layouts) const;
  absl::StatusOr<cublasLtMatmulAlgo_t> AlgorithmFor(
      size_t token_count, const Layouts& layouts) const;

  const CublasLtApi api_;
  const Sizes sizes_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  std::vector<cublasLtMatmulAlgo_t> algorithms_;  // for 1, 2, 4 ... tokens
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_PROJECT_CUBLASLT_PRODUCT_H_
