#ifndef ENGRAM_COMPUTE_PROJECT_PANEL_KERNEL_H_
#define ENGRAM_COMPUTE_PROJECT_PANEL_KERNEL_H_

#include <cstddef>
#include <cstdint>

// The inner loops of the projection, for the vector width of this CPU.

namespace engram {

inline constexpr size_t kPanelColumns = 32;  // output columns of one panel
inline constexpr size_t kScaleBlock = 32;    // values of K that share a scale
inline constexpr size_t kMaxTileTokens = 256;

// One panel of weights times a tile of token rows.
struct PanelProduct {
  size_t in = 0;                    // K
  const uint8_t* codes = nullptr;   // e4m3 [K][kPanelColumns], no NaN
  const uint8_t* scales = nullptr;  // e8m0 [K / kScaleBlock]
  size_t tokens = 0;                // 1 .. kMaxTileTokens
  const float* rows = nullptr;      // [K / kScaleBlock][tokens][kScaleBlock]
  float* sums = nullptr;            // out: [tokens][kPanelColumns]
};

// For every token m and column n, with K in ascending order:
//   part = +0; part = fma(rows[k], weight[k], part) over a block of 32;
//   sum  = fma(part, scale of the block, sum), from +0.
// Each step is one correctly rounded float32 operation of one column, so the
// bits depend neither on the number of tokens nor on the vector width.
//
// Runs the widest vectors that this CPU has.
void ProjectPanel(const PanelProduct& product);

}  // namespace engram

#endif  // ENGRAM_COMPUTE_PROJECT_PANEL_KERNEL_H_
