#include "compute/project/cublaslt_product.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

class Layout {
 public:
  static absl::StatusOr<Layout> Create(const CublasLtApi& api, uint64_t rows,
                                       uint64_t columns) {
    Layout layout(api);
    ENGRAM_RETURN_IF_ERROR(
        CublasLtStatus(api,
                       api.layout_create(&layout.layout_, CUDA_R_16BF, rows,
                                         columns, static_cast<int64_t>(rows)),
                       absl::StrCat("layout of ", rows, " x ", columns)));
    return layout;
  }
  ~Layout() {
    if (layout_ != nullptr) api_->layout_destroy(layout_);
  }
  Layout(Layout&& other) noexcept
      : api_(other.api_), layout_(std::exchange(other.layout_, nullptr)) {}
  Layout& operator=(Layout&&) = delete;

  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  explicit Layout(const CublasLtApi& api) : api_(&api) {}

  const CublasLtApi* api_;
  cublasLtMatrixLayout_t layout_ = nullptr;
};

}  // namespace

// cuBLASLt thinks in columns: a row-major [a, b] is its b x a.
struct CublasLtProduct::Layouts {
  Layout weights;
  Layout tokens;
  Layout kv;
};

absl::Status FastProduct::Available() { return LoadCublasLt().status(); }

absl::StatusOr<std::unique_ptr<const FastProduct>> FastProduct::Create(
    const Sizes& sizes) {
  ENGRAM_ASSIGN_OR_RETURN(const CublasLtApi api, LoadCublasLt());
  return CublasLtProduct::Create(api, sizes);
}

absl::StatusOr<std::unique_ptr<const FastProduct>> CublasLtProduct::Create(
    const CublasLtApi& api, const Sizes& sizes) {
  ENGRAM_CHECK(sizes.in > 0 && sizes.out > 0 && sizes.max_tokens > 0);
  auto product = absl::WrapUnique(new CublasLtProduct(api, sizes));
  ENGRAM_RETURN_IF_ERROR(product->Start());
  for (size_t tokens = 1;; tokens *= 2) {
    ENGRAM_ASSIGN_OR_RETURN(const Layouts layouts,
                            product->MakeLayouts(tokens));
    ENGRAM_ASSIGN_OR_RETURN(const cublasLtMatmulAlgo_t algorithm,
                            product->Choose(layouts));
    product->algorithms_.push_back(algorithm);
    if (tokens >= sizes.max_tokens) break;
  }
  return std::unique_ptr<const FastProduct>(std::move(product));
}

CublasLtProduct::~CublasLtProduct() {
  if (preference_ != nullptr) api_.preference_destroy(preference_);
  if (desc_ != nullptr) api_.desc_destroy(desc_);
  if (handle_ != nullptr) api_.destroy(handle_);
}

absl::Status CublasLtProduct::Start() {
  const auto check = [this](cublasStatus_t status, const char* what) {
    return CublasLtStatus(api_, status, what);
  };
  ENGRAM_RETURN_IF_ERROR(check(api_.create(&handle_), "starting cuBLASLt"));
  ENGRAM_RETURN_IF_ERROR(
      check(api_.desc_create(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
            "describing the fast projection"));
  const cublasOperation_t transpose = CUBLAS_OP_T;
  ENGRAM_RETURN_IF_ERROR(
      check(api_.desc_set_attribute(desc_, CUBLASLT_MATMUL_DESC_TRANSA,
                                    &transpose, sizeof(transpose)),
            "transposing the weights"));
  ENGRAM_RETURN_IF_ERROR(check(api_.preference_create(&preference_),
                               "preferences of the fast projection"));
  constexpr uint32_t kAlignment = 16;
  for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    ENGRAM_RETURN_IF_ERROR(
        check(api_.preference_set_attribute(preference_, attribute, &kAlignment,
                                            sizeof(kAlignment)),
              "alignment of the fast projection"));
  }
  const uint64_t workspace_bytes = 0;
  return check(api_.preference_set_attribute(
                   preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                   &workspace_bytes, sizeof(workspace_bytes)),
               "workspace of the fast projection");
}

absl::StatusOr<CublasLtProduct::Layouts> CublasLtProduct::MakeLayouts(
    size_t token_count) const {
  ENGRAM_ASSIGN_OR_RETURN(Layout weights,
                          Layout::Create(api_, sizes_.in, sizes_.out));
  ENGRAM_ASSIGN_OR_RETURN(Layout tokens,
                          Layout::Create(api_, sizes_.in, token_count));
  ENGRAM_ASSIGN_OR_RETURN(Layout kv,
                          Layout::Create(api_, sizes_.out, token_count));
  return Layouts{std::move(weights), std::move(tokens), std::move(kv)};
}

absl::StatusOr<cublasLtMatmulAlgo_t> CublasLtProduct::Choose(
    const Layouts& layouts) const {
  cublasLtMatmulHeuristicResult_t best = {};
  int found = 0;
  ENGRAM_RETURN_IF_ERROR(CublasLtStatus(
      api_,
      api_.algo_get_heuristic(handle_, desc_, layouts.weights.get(),
                              layouts.tokens.get(), layouts.kv.get(),
                              layouts.kv.get(), preference_, 1, &best, &found),
      absl::StrCat("choosing a product of ", sizes_.in, " to ", sizes_.out,
                   " features")));
  if (found == 0 || best.state != CUBLAS_STATUS_SUCCESS) {
    return absl::UnimplementedError(
        absl::StrCat("cuBLASLt has no algorithm for a product of ", sizes_.in,
                     " to ", sizes_.out, " features in bf16"));
  }
  return best.algo;
}

// One chosen for more tokens nearly always does.
absl::StatusOr<cublasLtMatmulAlgo_t> CublasLtProduct::AlgorithmFor(
    size_t token_count, const Layouts& layouts) const {
  const cublasLtMatmulAlgo_t& algorithm =
      algorithms_[std::bit_width(token_count - 1)];
  cublasLtMatmulHeuristicResult_t checked = {};
  const cublasStatus_t status = api_.algo_check(
      handle_, desc_, layouts.weights.get(), layouts.tokens.get(),
      layouts.kv.get(), layouts.kv.get(), &algorithm, &checked);
  if (status == CUBLAS_STATUS_SUCCESS &&
      checked.state == CUBLAS_STATUS_SUCCESS && checked.workspaceSize == 0) {
    return algorithm;
  }
  return Choose(layouts);
}

absl::Status CublasLtProduct::Multiply(const Operands& operands,
                                       GpuStreamHandle stream) const {
  ENGRAM_CHECK(operands.token_count > 0 &&
               operands.token_count <= sizes_.max_tokens);
  ENGRAM_ASSIGN_OR_RETURN(const Layouts layouts,
                          MakeLayouts(operands.token_count));
  ENGRAM_ASSIGN_OR_RETURN(const cublasLtMatmulAlgo_t algorithm,
                          AlgorithmFor(operands.token_count, layouts));
  const float one = 1;
  const float zero = 0;
  return CublasLtStatus(
      api_,
      api_.matmul(handle_, desc_, &one, operands.weights, layouts.weights.get(),
                  operands.tokens, layouts.tokens.get(), &zero, operands.kv,
                  layouts.kv.get(), operands.kv, layouts.kv.get(), &algorithm,
                  nullptr, 0, stream),
      absl::StrCat("projecting ", operands.token_count, " tokens"));
}

}  // namespace engram
