#include <memory>
#include <vector>

#include "compute/project/fast_product.h"
#include "core/model/number_formats.h"
#include "tests/gpu/fake_cuda/fake_device.h"

// In the place of cuBLASLt: the same product, each sum in double.

namespace engram {
namespace {

class FakeFastProduct final : public FastProduct {
 public:
  explicit FakeFastProduct(const Sizes& sizes) : sizes_(sizes) {}

  absl::Status Multiply(const Operands& operands,
                        GpuStreamHandle stream) const override {
    fake_cuda::Device& device = fake_cuda::Device::Get();
    const auto lock = device.Lock();
    device.Put(device.Find(stream),
               [sizes = sizes_, operands] { Compute(sizes, operands); });
    return absl::OkStatus();
  }

 private:
  static void Compute(const Sizes& sizes, const Operands& operands) {
    std::vector<float> row(sizes.in);
    for (size_t m = 0; m < operands.token_count; ++m) {
      for (size_t k = 0; k < sizes.in; ++k) {
        row[k] = Bf16ToFloat(operands.tokens[m * sizes.in + k]);
      }
      for (size_t n = 0; n < sizes.out; ++n) {
        const uint16_t* const weights = operands.weights + n * sizes.in;
        double sum = 0;
        for (size_t k = 0; k < sizes.in; ++k) {
          sum += double{row[k]} * Bf16ToFloat(weights[k]);
        }
        operands.kv[m * sizes.out + n] = FloatToBf16(static_cast<float>(sum));
      }
    }
  }

  const Sizes sizes_;
};

}  // namespace

absl::Status FastProduct::Available() { return absl::OkStatus(); }

absl::StatusOr<std::unique_ptr<const FastProduct>> FastProduct::Create(
    const Sizes& sizes) {
  return std::make_unique<const FakeFastProduct>(sizes);
}

}  // namespace engram
