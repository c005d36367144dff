#include "compute/project/projection.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute/project/panel_kernel.h"
#include "compute/project/projection_weights.h"
#include "core/base/check.h"
#include "core/base/page_buffer.h"
#include "core/base/status_macros.h"
#include "core/base/thread_pool.h"
#include "core/model/number_formats.h"

namespace engram {
namespace {

size_t PanelCount(uint32_t out) {
  return (out + kPanelColumns - 1) / kPanelColumns;
}

const uint8_t* AsCodes(const PageBuffer& buffer) {
  return reinterpret_cast<const uint8_t*>(buffer.bytes().data());
}

// Copies codes [32 columns][K] of one panel to [K][32 columns]; columns past
// the last are left 0.
void PackPanel(const Projection::Weights& weights, size_t panel,
               uint8_t* packed) {
  const size_t first = panel * kPanelColumns;
  const size_t columns = std::min(kPanelColumns, weights.out - first);
  for (size_t k0 = 0; k0 < weights.in; k0 += kScaleBlock) {
    for (size_t c = 0; c < columns; ++c) {
      const uint8_t* const from = &weights.codes[(first + c) * weights.in + k0];
      uint8_t* const to = packed + k0 * kPanelColumns + c;
      for (size_t k = 0; k < kScaleBlock; ++k) to[k * kPanelColumns] = from[k];
    }
  }
}

// rows [tokens][K] -> [K / 32][tokens][32]: what a panel reads at a time lies
// together, and not a power of two apart.
void PackRows(absl::Span<const float> rows, size_t in, size_t tokens,
              float* packed, ThreadPool* pool) {
  constexpr size_t kTokensAtOnce = 8;
  const size_t items = (tokens + kTokensAtOnce - 1) / kTokensAtOnce;
  pool->ParallelFor(items, [&](size_t item) {
    const size_t first = item * kTokensAtOnce;
    const size_t last = std::min(tokens, first + kTokensAtOnce);
    for (size_t b = 0; b < in / kScaleBlock; ++b) {
      for (size_t m = first; m < last; ++m) {
        std::memcpy(packed + (b * tokens + m) * kScaleBlock,
                    rows.data() + m * in + b * kScaleBlock,
                    kScaleBlock * sizeof(float));
      }
    }
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Projection>> Projection::Create(
    const Weights& weights, ThreadPool* pool) {
  ENGRAM_RETURN_IF_ERROR(CheckProjectionWeights(weights, pool));
  auto projection = absl::WrapUnique(new Projection(weights.in, weights.out));
  const size_t panels = PanelCount(weights.out);
  const size_t panel_bytes = size_t{weights.in} * kPanelColumns;
  ENGRAM_ASSIGN_OR_RETURN(projection->packed_codes_,
                          PageBuffer::Allocate(panels * panel_bytes));
  ENGRAM_ASSIGN_OR_RETURN(projection->packed_scales_,
                          PageBuffer::Allocate(weights.scales.size()));
  std::memcpy(projection->packed_scales_.bytes().data(), weights.scales.data(),
              weights.scales.size());
  auto* const packed =
      reinterpret_cast<uint8_t*>(projection->packed_codes_.bytes().data());
  pool->ParallelFor(panels, [&](size_t panel) {
    PackPanel(weights, panel, packed + panel * panel_bytes);
  });
  return std::unique_ptr<const Projection>(std::move(projection));
}

void Projection::Project(absl::Span<const float> rows, absl::Span<uint16_t> kv,
                         ThreadPool* pool) const {
  const size_t all_tokens = rows.size() / in_;
  ENGRAM_CHECK(rows.size() == all_tokens * in_);
  ENGRAM_CHECK(kv.size() == all_tokens * out_);
  const size_t scales_per_panel = in_ / kScaleBlock;
  const auto packed_rows = std::make_unique_for_overwrite<float[]>(
      std::min(all_tokens, kMaxTileTokens) * in_);
  for (size_t done = 0; done < all_tokens; done += kMaxTileTokens) {
    const size_t tokens = std::min(kMaxTileTokens, all_tokens - done);
    PackRows(rows.subspan(done * in_, tokens * in_), in_, tokens,
             packed_rows.get(), pool);
    uint16_t* const tile = kv.data() + done * out_;
    pool->ParallelFor(PanelCount(out_), [&](size_t panel) {
      alignas(64) float sums[kMaxTileTokens * kPanelColumns];
      PanelProduct product;
      product.in = in_;
      product.codes =
          AsCodes(packed_codes_) + panel * size_t{in_} * kPanelColumns;
      product.scales = AsCodes(packed_scales_) + panel * scales_per_panel;
      product.tokens = tokens;
      product.rows = packed_rows.get();
      product.sums = sums;
      ProjectPanel(product);
      const size_t first = panel * kPanelColumns;
      const size_t columns = std::min(kPanelColumns, out_ - first);
      for (size_t m = 0; m < tokens; ++m) {
        for (size_t c = 0; c < columns; ++c) {
          tile[m * out_ + first + c] = FloatToBf16(sums[m * kPanelColumns + c]);
        }
      }
    });
  }
}

}  // namespace engram
