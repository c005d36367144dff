#include "compute/block/engram_block.h"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/model/checkpoint.h"
#include "core/model/number_formats.h"
#include "core/model/token_map.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace engram {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

const char kTiny[] = ENGRAM_SOURCE_DIR "/tests/golden/data/tiny";

// A block of the tiny checkpoint, whose values the golden tests check; here
// only what spans it takes and which it writes.
class EngramBlockTest : public testing::Test {
 protected:
  EngramBlockTest()
      : pool_({.thread_count = 2}),
        checkpoint_(*Checkpoint::Open(kTiny)),
        map_(*TokenMap::Load(absl::StrCat(kTiny, "/", kTokenMapFileName),
                             checkpoint_.config())),
        block_(*EngramBlock::Create(checkpoint_, map_, &pool_)) {}

  const EngramConfig& config() const { return block_->config(); }

  // Rows from the start of the table, good enough for any token.
  std::vector<std::byte> Rows(size_t tokens) const {
    std::vector<std::byte> rows(tokens * config().columns() *
                                block_->row_format().row_bytes());
    EXPECT_EQ(checkpoint_.PackRows(0, 0, absl::MakeSpan(rows)),
              absl::OkStatus());
    return rows;
  }

  std::vector<std::byte> Streams(size_t tokens) const {
    std::mt19937 random(1);
    std::vector<std::byte> bytes;
    for (size_t i = 0; i < tokens * config().hc_mult * config().dim; ++i) {
      const uint16_t bits =
          FloatToBf16(std::normal_distribution<float>()(random));
      bytes.push_back(std::byte(bits & 0xFF));
      bytes.push_back(std::byte(bits >> 8));
    }
    return bytes;
  }

  absl::Status Forward(const std::vector<std::byte>& rows,
                       const std::vector<std::byte>& streams,
                       const std::vector<uint8_t>& mask,
                       const BlockOutputs& outputs) const {
    return block_->Forward(0, StreamDtype::kBf16, rows, streams, mask, outputs);
  }

  void ExpectRefused(const absl::Status& status,
                     const std::string& message) const {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(message));
  }

  ThreadPool pool_;
  const Checkpoint checkpoint_;
  const TokenMap map_;
  const std::unique_ptr<const EngramBlock> block_;
};

TEST_F(EngramBlockTest, WritesOnlyWhatIsAskedFor) {
  const auto rows = Rows(2);
  const auto streams = Streams(2);
  std::vector<std::byte> all_streams(streams.size());
  std::vector<float> all_gate(2 * config().hc_mult);
  std::vector<uint16_t> all_value(2 * config().dim);
  ASSERT_EQ(Forward(rows, streams, {},
                    {absl::MakeSpan(all_streams), absl::MakeSpan(all_gate),
                     absl::MakeSpan(all_value)}),
            absl::OkStatus());
  std::vector<std::byte> only_streams(streams.size());
  ASSERT_EQ(Forward(rows, streams, {}, {absl::MakeSpan(only_streams)}),
            absl::OkStatus());
  EXPECT_EQ(only_streams, all_streams);
  std::vector<float> gate(all_gate.size());
  std::vector<uint16_t> value(all_value.size());
  BlockOutputs contribution;
  contribution.gate = absl::MakeSpan(gate);
  contribution.value = absl::MakeSpan(value);
  ASSERT_EQ(Forward(rows, streams, {}, contribution), absl::OkStatus());
  EXPECT_EQ(gate, all_gate);
  EXPECT_EQ(value, all_value);
}

TEST_F(EngramBlockTest, StreamsMayBeUpdatedInPlace) {
  const auto rows = Rows(3);
  auto streams = Streams(3);
  std::vector<std::byte> wanted(streams.size());
  const std::vector<uint8_t> mask = {1, 0, 1};
  const auto live_rows = Rows(2);
  ASSERT_EQ(Forward(live_rows, streams, mask, {absl::MakeSpan(wanted)}),
            absl::OkStatus());
  ASSERT_EQ(Forward(live_rows, streams, mask, {absl::MakeSpan(streams)}),
            absl::OkStatus());
  EXPECT_EQ(streams, wanted);
}

// More tokens than one tile holds, some dead.
TEST_F(EngramBlockTest, LongRunsEqualShortOnes) {
  constexpr size_t kTokens = 600;
  std::mt19937 random(2);
  std::vector<uint8_t> mask(kTokens);
  size_t live = 0;
  for (uint8_t& m : mask) live += m = random() % 5 == 0 ? 0 : 1;
  const auto one_row = Rows(1);
  std::vector<std::byte> rows;
  for (size_t i = 0; i < live; ++i) {
    rows.insert(rows.end(), one_row.begin(), one_row.end());
  }
  const auto streams = Streams(kTokens);
  std::vector<std::byte> out(streams.size());
  ASSERT_EQ(Forward(rows, streams, mask, {absl::MakeSpan(out)}),
            absl::OkStatus());
  const size_t bytes = streams.size() / kTokens;
  for (size_t m = 0; m < kTokens; ++m) {
    const std::vector<std::byte> in(streams.begin() + m * bytes,
                                    streams.begin() + (m + 1) * bytes);
    std::vector<std::byte> wanted(bytes);
    ASSERT_EQ(Forward(mask[m] != 0 ? one_row : std::vector<std::byte>(), in,
                      {mask[m]}, {absl::MakeSpan(wanted)}),
              absl::OkStatus());
    ASSERT_EQ(std::memcmp(&out[m * bytes], wanted.data(), bytes), 0) << m;
  }
}

TEST_F(EngramBlockTest, AllDead) {
  const auto streams = Streams(2);
  std::vector<std::byte> out(streams.size());
  std::vector<float> gate(2 * config().hc_mult, -7);
  std::vector<uint16_t> value(2 * config().dim, 7);
  ASSERT_EQ(Forward({}, streams, {0, 0},
                    {absl::MakeSpan(out), absl::MakeSpan(gate),
                     absl::MakeSpan(value)}),
            absl::OkStatus());
  EXPECT_EQ(out, streams);
  EXPECT_THAT(gate, Each(0));
  EXPECT_THAT(value, Each(0));
}

TEST_F(EngramBlockTest, NoTokens) {
  EXPECT_EQ(Forward({}, {}, {}, {}), absl::OkStatus());
}

TEST_F(EngramBlockTest, RefusesSizesThatDoNotFit) {
  const auto rows = Rows(2);
  const auto streams = Streams(2);
  std::vector<std::byte> out(streams.size(), std::byte{0x5A});
  std::vector<float> gate(7);
  std::vector<uint16_t> value(2 * config().dim + 1);
  ExpectRefused(block_->Forward(2, StreamDtype::kBf16, rows, streams, {}, {}),
                "layer index 2 of a model with 2");
  ExpectRefused(Forward(Rows(1), streams, {}, {absl::MakeSpan(out)}),
                "bytes of packed rows for 2 live tokens: 792 instead of 1584");
  ExpectRefused(Forward(rows, streams, {0, 1}, {absl::MakeSpan(out)}),
                "bytes of packed rows for 1 live tokens: 1584 instead of 792");
  ExpectRefused(Forward(rows, streams, {1}, {}),
                "mask entries: 1 instead of 2");
  std::vector<std::byte> cut = streams;
  cut.pop_back();
  ExpectRefused(Forward(rows, cut, {}, {}),
                "bytes of streams: 2047 instead of 1024");
  ExpectRefused(Forward(rows, streams, {}, {absl::MakeSpan(cut)}),
                "bytes of output streams: 2047 instead of 2048");
  ExpectRefused(Forward(rows, streams, {}, {{}, absl::MakeSpan(gate)}),
                "output gates: 7 instead of 8");
  ExpectRefused(Forward(rows, streams, {}, {{}, {}, absl::MakeSpan(value)}),
                "output values: 257 instead of 256");
  ExpectRefused(Forward(rows, streams, {}, {{}, {}, {}, absl::MakeSpan(value)}),
                "output kv: 257 instead of 1280");
  EXPECT_THAT(out, Each(std::byte{0x5A}));
}

TEST_F(EngramBlockTest, RefusesATokenMapOfAnotherModel) {
  const std::string odd = ENGRAM_SOURCE_DIR "/tests/golden/data/odd";
  const Checkpoint other = *Checkpoint::Open(odd);
  const auto block = EngramBlock::Create(other, map_, &pool_);
  EXPECT_EQ(block.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(block.status().message(), HasSubstr("vocabulary of 300"));
}

TEST_F(EngramBlockTest, AFileThatIsTruncatedWhileMappedIsAnError) {
  const std::string dir = absl::StrCat(testing::TempDir(), "/truncated");
  std::filesystem::remove_all(dir);
  std::filesystem::copy(kTiny, dir);
  const std::string file = dir + "/model-00002-of-00002.safetensors";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  const Checkpoint checkpoint = *Checkpoint::Open(dir);
  std::filesystem::resize_file(file, 8192);
  const auto block = EngramBlock::Create(checkpoint, map_, &pool_);
  EXPECT_EQ(block.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(block.status().message(), HasSubstr(file));
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace engram
