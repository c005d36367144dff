#include "engram_client/plan/row_scatter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace engram {
namespace {

constexpr size_t kRowBytes = 7;
constexpr std::byte kPoison{0xEE};

std::byte ByteOf(uint32_t layer, RowId row, size_t i) {
  return static_cast<std::byte>(layer * 101 + row * 13 + i);
}

CallRows OneCall(const GatherPlan& plan,
                 absl::Span<const GatherPlan::Part> parts) {
  return std::move(CallRows::Order(plan, {parts}).front());
}

TEST(RowScatterTest, FillsEverySlotWhateverThePiecesAndTheirOrder) {
  const std::vector<std::vector<RowId>> ids = {{4, 9, 4, 70, 33}, {33, 33}};
  for (size_t piece = 1; piece <= 64; ++piece) {
    std::vector<std::vector<std::byte>> buffers;
    std::vector<LayerGather> layers;
    for (uint32_t i = 0; i < ids.size(); ++i) {
      buffers.emplace_back(ids[i].size() * kRowBytes, kPoison);
    }
    std::vector<absl::Span<std::byte>> outs;
    for (uint32_t i = 0; i < ids.size(); ++i) {
      outs.push_back(absl::MakeSpan(buffers[i]));
      layers.push_back({LayerId{i}, ids[i], outs.back()});
    }
    const GatherPlan plan(layers, 16);
    const CallRows rows = OneCall(plan, plan.parts());
    const RowScatter scatter(plan, rows, outs, kRowBytes);

    std::vector<std::byte> reply;
    for (const CallRows::Run& run : rows.runs()) {
      for (uint32_t row = run.begin; row < run.end; ++row) {
        for (size_t i = 0; i < kRowBytes; ++i) {
          reply.push_back(ByteOf(run.layer_index, rows.row_ids()[row], i));
        }
      }
    }
    ASSERT_EQ(scatter.size_bytes(), reply.size());
    std::vector<size_t> offsets;
    for (size_t i = 0; i < reply.size(); i += piece) offsets.push_back(i);
    std::shuffle(offsets.begin(), offsets.end(), std::mt19937(piece));
    const absl::Span<const std::byte> all(reply);
    for (const size_t offset : offsets) {
      scatter.Write(offset, all.subspan(offset, piece));
    }
    for (uint32_t layer = 0; layer < ids.size(); ++layer) {
      for (size_t slot = 0; slot < ids[layer].size(); ++slot) {
        for (size_t i = 0; i < kRowBytes; ++i) {
          ASSERT_EQ(buffers[layer][slot * kRowBytes + i],
                    ByteOf(layer, ids[layer][slot], i));
        }
      }
    }
  }
}

TEST(RowScatterTest, TouchesNothingButItsParts) {
  const std::vector<RowId> ids = {1, 40, 2, 41};
  std::vector<std::byte> buffer(ids.size() * kRowBytes, kPoison);
  const std::vector<absl::Span<std::byte>> outs = {absl::MakeSpan(buffer)};
  const std::vector<LayerGather> layers = {{LayerId{0}, ids, outs[0]}};
  const GatherPlan plan(layers, 32);
  const CallRows rows = OneCall(plan, plan.parts().subspan(1, 1));
  const RowScatter scatter(plan, rows, outs, kRowBytes);
  scatter.Write(0, std::vector<std::byte>(2 * kRowBytes));
  scatter.Write(2 * kRowBytes, {});
  EXPECT_EQ(buffer[0], kPoison);
  EXPECT_EQ(buffer[1 * kRowBytes], std::byte{0});
  EXPECT_EQ(buffer[2 * kRowBytes], kPoison);
  EXPECT_EQ(buffer[3 * kRowBytes], std::byte{0});
}

}  // namespace
}  // namespace engram
