#ifndef ENGRAM_COMPUTE_PROJECT_CUBLASLT_API_H_
#define ENGRAM_COMPUTE_PROJECT_CUBLASLT_API_H_

#include <cublasLt.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace engram {

// What the fast projection uses of cuBLASLt. Nothing links against the
// library (it has 500 MB, and many machines have none): it is loaded when it
// is wanted, and stays. Immutable.
struct CublasLtApi {
  decltype(&cublasLtGetStatusName) get_status_name = nullptr;
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulAlgoCheck) algo_check = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) algo_get_heuristic = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set_attribute = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set_attribute =
      nullptr;
};

// Where the library is looked for, in this order.
absl::Span<const std::string> CublasLtNames();

// The first of `names` that can be loaded. NOT_FOUND names all of them and
// what the loader said; FAILED_PRECONDITION: it lacks a function.
absl::StatusOr<CublasLtApi> LoadCublasLt(
    absl::Span<const std::string> names = CublasLtNames());

// OK, or RESOURCE_EXHAUSTED, UNIMPLEMENTED (this product cannot be had) or
// INTERNAL as "WHAT: CUBLAS_STATUS_...".
absl::Status CublasLtStatus(const CublasLtApi& api, cublasStatus_t status,
                            absl::string_view what);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_PROJECT_CUBLASLT_API_H_
