// Over tests/gpu/fake_cuda: the code of the GPU, run on the CPU. What it
// computes is hash_kernel_test's.
#include "compute/hash/gpu_hasher.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compute/hash/flat_tokens.h"
#include "compute/hash/ngram_hash.h"
#include "core/gpu/gpu_memory.h"
#include "core/gpu/gpu_stream.h"
#include "core/model/presets.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using test::IsError;
using test::IsOk;
using ::testing::HasSubstr;

DeviceBuffer Upload(absl::Span<const uint32_t> values) {
  auto buffer = DeviceBuffer::Upload(
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()),
                          values.size() * sizeof(uint32_t)));
  EXPECT_THAT(buffer, IsOk());
  return *std::move(buffer);
}

class GpuHasherTest : public testing::Test {
 protected:
  GpuHasherTest()
      : config_(*PresetConfig("odd")),
        layout_(*EngramLayout::Create(config_)),
        map_(*TokenMap::Create(MadeUpTokenMap(config_), config_)) {
    for (uint32_t i = 0; i < 70; ++i) {
      tokens_.push_back(i * i % config_.vocab_size);
    }
    chunk_.tokens = tokens_;
  }

  std::vector<uint32_t> Wanted() const {
    const auto hasher = NgramHasher::Create(config_, layout_, map_);
    EXPECT_THAT(hasher, IsOk());
    EXPECT_THAT(hasher->Check(chunk_), IsOk());
    const size_t rows = tokens_.size() * config_.columns();
    std::vector<uint32_t> wanted(rows * hasher->layer_count());
    for (size_t layer = 0; layer < hasher->layer_count(); ++layer) {
      hasher->Hash(layer, chunk_,
                   absl::MakeSpan(wanted).subspan(layer * rows, rows));
    }
    return wanted;
  }

  const EngramConfig config_;
  const EngramLayout layout_;
  const TokenMap map_;
  std::vector<uint32_t> tokens_;
  TokenChunk chunk_;
};

TEST_F(GpuHasherTest, HashesAsTheCpu) {
  const auto hasher = GpuHasher::Create(config_, layout_, map_);
  ASSERT_THAT(hasher, IsOk());
  const FlatSizes sizes = FlatSizesOf({&chunk_, 1}, config_.max_lookback());
  std::vector<uint32_t> ids(sizes.slots);
  std::vector<uint32_t> positions(sizes.tokens);
  FlattenTokens({&chunk_, 1}, config_.max_lookback(), absl::MakeSpan(ids),
                absl::MakeSpan(positions));
  const std::vector<uint32_t> wanted = Wanted();
  std::vector<uint32_t> rows(wanted.size(), 0xDEADBEEF);
  const DeviceBuffer device_ids = Upload(ids);
  const DeviceBuffer device_positions = Upload(positions);
  const DeviceBuffer device_rows = Upload(rows);
  const DeviceBuffer device_bad = Upload({0xFFFFFFFF});
  const auto stream = GpuStream::Create();
  ASSERT_THAT(stream, IsOk());
  HashBatch batch;
  batch.ids = device_ids.as<uint32_t>();
  batch.positions = device_positions.as<uint32_t>();
  batch.slot_count = static_cast<uint32_t>(ids.size());
  batch.token_count = static_cast<uint32_t>(positions.size());
  batch.row_ids = device_rows.as<uint32_t>();
  batch.first_bad = device_bad.as<uint32_t>();
  ASSERT_THAT(hasher->Hash(batch, (*stream)->handle()), IsOk());
  uint32_t first_bad = 0;
  ASSERT_THAT(CopyToHost(rows.data(), device_rows.data(),
                         rows.size() * sizeof(uint32_t), (*stream)->handle()),
              IsOk());
  ASSERT_THAT(CopyToHost(&first_bad, device_bad.data(), sizeof(first_bad),
                         (*stream)->handle()),
              IsOk());
  ASSERT_THAT((*stream)->Synchronize(), IsOk());
  EXPECT_EQ(rows, wanted);
  EXPECT_EQ(first_bad, 0xFFFFFFFF);
}

TEST_F(GpuHasherTest, NoTokensAreNoWork) {
  const auto hasher = GpuHasher::Create(config_, layout_, map_);
  ASSERT_THAT(hasher, IsOk());
  EXPECT_THAT(hasher->Hash({}, nullptr), IsOk());
}

TEST_F(GpuHasherTest, RefusesAMapOfAnotherVocabulary) {
  EngramConfig other = config_;
  other.vocab_size += 1;
  EXPECT_THAT(GpuHasher::Create(other, layout_, map_),
              IsError(absl::StatusCode::kInvalidArgument,
                      HasSubstr("entries for a vocabulary of")));
}

}  // namespace
}  // namespace engram
