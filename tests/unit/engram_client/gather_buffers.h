#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_GATHER_BUFFERS_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_GATHER_BUFFERS_H_

#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "engram_client/rpc/fake_table_server.h"
#include "engram_client/table_client.h"

namespace engram {

// Row ids of both layers and the buffers for their rows, poisoned.
struct GatherBuffers {
  explicit GatherBuffers(std::vector<RowId> one,
                         std::vector<RowId> fourteen = {})
      : ids{std::move(one), std::move(fourteen)} {
    for (size_t i = 0; i < 2; ++i) {
      out[i].assign(ids[i].size() * FakeTable::kRowBytes, std::byte{0xEE});
    }
  }

  static GatherBuffers Random(size_t rows, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<RowId> ids[2];
    for (auto& layer : ids) {
      for (size_t i = 0; i < rows; ++i) layer.push_back(random() % 1000);
    }
    return GatherBuffers(ids[0], ids[1]);
  }

  std::vector<LayerGather> Layers() {
    return {{LayerId{1}, ids[0], absl::MakeSpan(out[0])},
            {LayerId{14}, ids[1], absl::MakeSpan(out[1])}};
  }

  void Poison() {
    for (auto& layer : out) layer.assign(layer.size(), std::byte{0xEE});
  }
  bool Poisoned() const {
    for (const auto& layer : out) {
      for (const std::byte b : layer) {
        if (b != std::byte{0xEE}) return false;
      }
    }
    return true;
  }
  bool Right() const {
    std::byte want[FakeTable::kRowBytes];
    for (size_t layer = 0; layer < 2; ++layer) {
      for (size_t i = 0; i < ids[layer].size(); ++i) {
        FakeTable::WriteRow(LayerId{layer == 0 ? 1U : 14U}, ids[layer][i],
                            want);
        if (std::memcmp(want, out[layer].data() + i * sizeof(want),
                        sizeof(want)) != 0) {
          return false;
        }
      }
    }
    return true;
  }

  std::vector<RowId> ids[2];
  std::vector<std::byte> out[2];
};

}  // namespace engram

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_GATHER_BUFFERS_H_
