#include "tests/gpu/check/matmul_ceiling.h"

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compute/project/cublaslt_api.h"
#include "core/base/status_macros.h"
#include "core/gpu/gpu_memory.h"
#include "core/gpu/gpu_status.h"
#include "tests/gpu/check/fill_random_launch.h"
#include "tests/gpu/check/gpu_timer.h"

namespace engram::gpu_check {
namespace {

constexpr size_t kWorkspaceBytes = size_t{64} << 20;
constexpr int kAlgorithms = 8;
constexpr size_t kSets = 2;

// cuBLASLt's objects of one product, destroyed with this.
struct Product {
  explicit Product(const CublasLtApi& functions) : api(functions) {}
  ~Product() {
    for (cublasLtMatrixLayout_t layout : {weights, tokens, kv}) {
      if (layout != nullptr) api.layout_destroy(layout);
    }
    if (preference != nullptr) api.preference_destroy(preference);
    if (desc != nullptr) api.desc_destroy(desc);
    if (handle != nullptr) api.destroy(handle);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  const CublasLtApi api;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatrixLayout_t weights = nullptr;
  cublasLtMatrixLayout_t tokens = nullptr;
  cublasLtMatrixLayout_t kv = nullptr;
};

// kv = tokens * weights^T, row major; cuBLASLt thinks in columns.
absl::Status Describe(const MatmulSizes& sizes, Product* product) {
  const CublasLtApi& api = product->api;
  const auto check = [&](cublasStatus_t status, const char* what) {
    return CublasLtStatus(api, status, what);
  };
  const auto layout = [&](cublasLtMatrixLayout_t* made, uint64_t rows,
                          uint64_t columns) {
    return check(api.layout_create(made, CUDA_R_16BF, rows, columns,
                                   static_cast<int64_t>(rows)),
                 "layout of the ceiling's product");
  };
  const cublasOperation_t transpose = CUBLAS_OP_T;
  ENGRAM_RETURN_IF_ERROR(
      check(api.create(&product->handle), "starting cuBLASLt"));
  ENGRAM_RETURN_IF_ERROR(
      check(api.desc_create(&product->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F),
            "describing the ceiling's product"));
  ENGRAM_RETURN_IF_ERROR(
      check(api.desc_set_attribute(product->desc, CUBLASLT_MATMUL_DESC_TRANSA,
                                   &transpose, sizeof(transpose)),
            "transposing the ceiling's weights"));
  ENGRAM_RETURN_IF_ERROR(check(api.preference_create(&product->preference),
                               "preferences of the ceiling's product"));
  ENGRAM_RETURN_IF_ERROR(check(
      api.preference_set_attribute(product->preference,
                                   CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                   &kWorkspaceBytes, sizeof(kWorkspaceBytes)),
      "workspace of the ceiling's product"));
  ENGRAM_RETURN_IF_ERROR(layout(&product->weights, sizes.in, sizes.out));
  ENGRAM_RETURN_IF_ERROR(layout(&product->tokens, sizes.in, sizes.tokens));
  return layout(&product->kv, sizes.out, sizes.tokens);
}

struct Operands {
  std::vector<DeviceBuffer> weights;  // [kSets]
  DeviceBuffer tokens;
  DeviceBuffer kv;
  DeviceBuffer workspace;
};

absl::StatusOr<DeviceBuffer> RandomBf16(GpuContext& context, size_t count) {
  ENGRAM_ASSIGN_OR_RETURN(DeviceBuffer buffer,
                          DeviceBuffer::Allocate(count * sizeof(uint16_t)));
  ENGRAM_RETURN_IF_GPU_ERROR(
      LaunchFillRandom({buffer.as<uint64_t>(), count / 4, context.seed(), 1},
                       context.stream().handle()),
      "filling an operand");
  return buffer;
}

absl::StatusOr<Operands> MakeOperands(GpuContext& context,
                                      const MatmulSizes& sizes) {
  Operands operands;
  for (size_t set = 0; set < kSets; ++set) {
    ENGRAM_ASSIGN_OR_RETURN(operands.weights.emplace_back(),
                            RandomBf16(context, size_t{sizes.in} * sizes.out));
  }
  ENGRAM_ASSIGN_OR_RETURN(operands.tokens,
                          RandomBf16(context, sizes.tokens * sizes.in));
  ENGRAM_ASSIGN_OR_RETURN(
      operands.kv,
      DeviceBuffer::Allocate(sizes.tokens * sizes.out * sizeof(uint16_t)));
  ENGRAM_ASSIGN_OR_RETURN(operands.workspace,
                          DeviceBuffer::Allocate(kWorkspaceBytes));
  return operands;
}

absl::StatusOr<double> MedianUs(GpuContext& context, const Product& product,
                                const Operands& operands,
                                const cublasLtMatmulAlgo_t& algorithm) {
  TimingPlan plan;
  plan.sets = kSets;
  plan.samples = 20;
  plan.budget = absl::Milliseconds(100);
  const float one = 1;
  const float zero = 0;
  ENGRAM_ASSIGN_OR_RETURN(
      const Timed timed,
      TimeLaunches(
          context.stream(), plan, [&](size_t set, GpuStreamHandle stream) {
            return CublasLtStatus(
                product.api,
                product.api.matmul(product.handle, product.desc, &one,
                                   operands.weights[set].data(),
                                   product.weights, operands.tokens.data(),
                                   product.tokens, &zero, operands.kv.data(),
                                   product.kv, operands.kv.data(), product.kv,
                                   &algorithm, operands.workspace.data(),
                                   kWorkspaceBytes, stream),
                "the ceiling's product");
          }));
  return timed.launch_us.median;
}

}  // namespace

std::string MatmulCeilingName(size_t tokens) {
  return absl::StrCat("cuBLASLt bf16, ", tokens, " tokens");
}

absl::StatusOr<double> MatmulRate(GpuContext& context,
                                  const MatmulSizes& sizes) {
  const std::string name = MatmulCeilingName(sizes.tokens);
  if (const auto known = context.FindCeiling(name)) return *known;
  ENGRAM_ASSIGN_OR_RETURN(const CublasLtApi api, LoadCublasLt());
  Product product(api);
  ENGRAM_RETURN_IF_ERROR(Describe(sizes, &product));
  std::array<cublasLtMatmulHeuristicResult_t, kAlgorithms> proposed = {};
  int found = 0;
  ENGRAM_RETURN_IF_ERROR(CublasLtStatus(
      api,
      api.algo_get_heuristic(product.handle, product.desc, product.weights,
                             product.tokens, product.kv, product.kv,
                             product.preference, kAlgorithms, proposed.data(),
                             &found),
      "choosing the ceiling's algorithms"));
  ENGRAM_ASSIGN_OR_RETURN(const Operands operands,
                          MakeOperands(context, sizes));
  double best_us = 0;
  for (int i = 0; i < found; ++i) {
    if (proposed[i].state != CUBLAS_STATUS_SUCCESS) continue;
    ENGRAM_ASSIGN_OR_RETURN(
        const double us,
        MedianUs(context, product, operands, proposed[i].algo));
    best_us = best_us == 0 ? us : std::min(best_us, us);
  }
  if (best_us == 0) {
    return absl::UnimplementedError("cuBLASLt has no algorithm for it");
  }
  const double rate = 2.0 * sizes.in * sizes.out *
                      static_cast<double>(sizes.tokens) / (best_us * 1e-6);
  context.AddCeiling(name, rate, "FLOP",
                     absl::StrCat(sizes.in, " to ", sizes.out, ", best of ",
                                  found, " algorithms, random values"));
  return rate;
}

}  // namespace engram::gpu_check
