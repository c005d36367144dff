#include "tests/unit/compute/project/fake_cublaslt.h"

#include <cstring>

#include "core/base/check.h"
#include "core/model/number_formats.h"

namespace engram::test {
namespace {

FakeCublasLtState state;

// The opaque objects hold what they were made of.
struct LayoutValues {
  uint64_t rows, columns;
  int64_t leading;
};
struct DescValues {
  cublasOperation_t transpose_a;
};

template <typename T, typename Opaque>
T Get(const Opaque* object) {
  T values;
  static_assert(sizeof(values) <= sizeof(*object));
  std::memcpy(&values, object, sizeof(values));
  return values;
}

template <typename Opaque, typename T>
cublasStatus_t Make(Opaque** object, const T& values) {
  *object = new Opaque{};
  std::memcpy(*object, &values, sizeof(values));
  ++state.objects;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Opaque>
cublasStatus_t Destroy(Opaque* object) {
  --state.objects;
  delete object;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t DescSetAttribute(cublasLtMatmulDesc_t desc,
                                cublasLtMatmulDescAttributes_t attribute,
                                const void* value, size_t) {
  ENGRAM_CHECK(attribute == CUBLASLT_MATMUL_DESC_TRANSA);
  std::memcpy(desc, value, sizeof(cublasOperation_t));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t PreferenceSetAttribute(
    cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t attribute,
    const void* value, size_t size) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    ENGRAM_CHECK(size == sizeof(state.workspace_bytes));
    std::memcpy(&state.workspace_bytes, value, size);
  } else {
    ENGRAM_CHECK(size == sizeof(state.alignment));
    std::memcpy(&state.alignment, value, size);
  }
  return CUBLAS_STATUS_SUCCESS;
}

// An algorithm is the number of tokens that it was chosen for.
cublasStatus_t GetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                            cublasLtMatrixLayout_t, cublasLtMatrixLayout_t b,
                            cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                            cublasLtMatmulPreference_t, int wanted,
                            cublasLtMatmulHeuristicResult_t results[],
                            int* found) {
  ENGRAM_CHECK(wanted == 1);
  *found = state.no_algorithm ? 0 : 1;
  results[0].algo.data[0] = Get<LayoutValues>(b).columns;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  state.chosen_for.push_back(Get<LayoutValues>(b).columns);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t AlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t,
                         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t b,
                         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                         const cublasLtMatmulAlgo_t*,
                         cublasLtMatmulHeuristicResult_t* result) {
  result->state = CUBLAS_STATUS_SUCCESS;
  return Get<LayoutValues>(b).columns == state.refused_tokens
             ? CUBLAS_STATUS_NOT_SUPPORTED
             : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t Matmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                      const void* alpha, const void* a,
                      cublasLtMatrixLayout_t a_layout, const void* b,
                      cublasLtMatrixLayout_t b_layout, const void* beta,
                      const void*, cublasLtMatrixLayout_t, void* d,
                      cublasLtMatrixLayout_t d_layout,
                      const cublasLtMatmulAlgo_t* algo, void* workspace,
                      size_t workspace_bytes, cudaStream_t) {
  ENGRAM_CHECK(*static_cast<const float*>(alpha) == 1);
  ENGRAM_CHECK(*static_cast<const float*>(beta) == 0);
  ENGRAM_CHECK(workspace == nullptr && workspace_bytes == 0);
  ENGRAM_CHECK(Get<DescValues>(desc).transpose_a == CUBLAS_OP_T);
  const auto al = Get<LayoutValues>(a_layout);
  const auto bl = Get<LayoutValues>(b_layout);
  const auto dl = Get<LayoutValues>(d_layout);
  ENGRAM_CHECK(al.rows == bl.rows && al.columns == dl.rows &&
               bl.columns == dl.columns);
  const auto at = [](const void* matrix, const LayoutValues& layout,
                     uint64_t row, uint64_t column) {
    return double{Bf16ToFloat(static_cast<const uint16_t*>(
        matrix)[column * static_cast<uint64_t>(layout.leading) + row])};
  };
  for (uint64_t column = 0; column < dl.columns; ++column) {
    for (uint64_t row = 0; row < dl.rows; ++row) {
      double sum = 0;
      for (uint64_t k = 0; k < al.rows; ++k) {
        sum += at(a, al, k, row) * at(b, bl, k, column);
      }
      static_cast<uint16_t*>(
          d)[column * static_cast<uint64_t>(dl.leading) + row] =
          FloatToBf16(static_cast<float>(sum));
    }
  }
  state.used = algo->data[0];
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

FakeCublasLtState& FakeCublasLtStateNow() { return state; }

CublasLtApi FakeCublasLt() {
  state = {};
  CublasLtApi api;
  api.get_status_name = [](cublasStatus_t status) {
    return status == CUBLAS_STATUS_NOT_INITIALIZED
               ? "CUBLAS_STATUS_NOT_INITIALIZED"
               : "CUBLAS_STATUS_OTHER";
  };
  api.create = [](cublasLtHandle_t* handle) {
    *handle = reinterpret_cast<cublasLtHandle_t>(&state);
    ++state.objects;
    return CUBLAS_STATUS_SUCCESS;
  };
  api.destroy = [](cublasLtHandle_t) {
    --state.objects;
    return CUBLAS_STATUS_SUCCESS;
  };
  api.matmul = &Matmul;
  api.algo_check = &AlgoCheck;
  api.algo_get_heuristic = &GetHeuristic;
  api.desc_create = [](cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                       cudaDataType_t scale) {
    ENGRAM_CHECK(compute == CUBLAS_COMPUTE_32F && scale == CUDA_R_32F);
    return Make(desc, DescValues{CUBLAS_OP_N});
  };
  api.desc_destroy = &Destroy;
  api.desc_set_attribute = &DescSetAttribute;
  api.layout_create = [](cublasLtMatrixLayout_t* layout, cudaDataType type,
                         uint64_t rows, uint64_t columns, int64_t leading) {
    ENGRAM_CHECK(type == CUDA_R_16BF);
    return Make(layout, LayoutValues{rows, columns, leading});
  };
  api.layout_destroy = &Destroy;
  api.preference_create = [](cublasLtMatmulPreference_t* preference) {
    return Make(preference, uint64_t{0});
  };
  api.preference_destroy = &Destroy;
  api.preference_set_attribute = &PreferenceSetAttribute;
  return api;
}

}  // namespace engram::test
