#include "engram_client/ctl/checkpoint_writer.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "core/model/checkpoint.h"
#include "core/model/manifest.h"
#include "core/model/token_map.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram::ctl {
namespace {

using test::IsError;
using testing::HasSubstr;
namespace fs = std::filesystem;
using absl::StatusCode;

class CheckpointWriterTest : public testing::Test {
 protected:
  absl::Status Write(const std::string& name, const std::string& preset,
                     uint64_t vocab_size, uint64_t seed, size_t threads) {
    const absl::StatusOr<MadeUpModel> model =
        MakeUpModel(preset, vocab_size, seed);
    if (!model.ok()) return model.status();
    fs::create_directories(dir_.File(name));
    ThreadPool pool({.thread_count = threads});
    return WriteCheckpoint(*model, dir_.File(name), pool,
                           {.progress = [](uint64_t, uint64_t) {},
                            .interrupted = [] { return false; }});
  }

  // Writes, opens and digests; the manifest that comes out.
  Manifest WriteAndCheck(const std::string& preset, uint64_t vocab_size) {
    const absl::Status written = Write(preset, preset, vocab_size, 1, 2);
    EXPECT_TRUE(written.ok()) << written;
    const absl::StatusOr<Checkpoint> checkpoint =
        Checkpoint::Open(dir_.File(preset));
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    const absl::StatusOr<TokenMap> map = TokenMap::Load(
        dir_.File(preset) + "/" + kTokenMapFileName, checkpoint->config());
    EXPECT_TRUE(map.ok()) << map.status();
    absl::StatusOr<Manifest> manifest =
        BuildManifest(*checkpoint, {}, [](uint64_t, uint64_t) {});
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    EXPECT_TRUE(CheckManifestMatches(*manifest, *checkpoint).ok());
    return *std::move(manifest);
  }

  test::TempDir dir_;
};

TEST_F(CheckpointWriterTest, EveryPresetIsASoundCheckpoint) {
  for (const char* preset : {"tiny", "odd", "tiny-scale"}) {
    WriteAndCheck(preset, 0);
  }
}

TEST_F(CheckpointWriterTest, VocabSizeSetsTheTables) {
  const Manifest manifest = WriteAndCheck("v41-mini", 300);
  EXPECT_EQ(manifest.config().engram_vocab_size, 300);
  EXPECT_EQ(manifest.config().dim, 5120);
  for (const ManifestLayer& layer : manifest.layers()) {
    EXPECT_GE(layer.row_count, 24 * 300);
    EXPECT_LT(layer.row_count, 24 * 900);
  }
}

TEST_F(CheckpointWriterTest, SpecialRowsAreInEveryLayer) {
  ASSERT_TRUE(Write("odd", "odd", 0, 1, 1).ok());
  const absl::StatusOr<Checkpoint> checkpoint =
      Checkpoint::Open(dir_.File("odd"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const size_t row_bytes = checkpoint->row_format().row_bytes();
  const size_t width = checkpoint->row_format().width;
  ASSERT_EQ(row_bytes, 64 + 2);
  for (size_t layer = 0; layer < checkpoint->layers().size(); ++layer) {
    std::vector<std::byte> packed(6 * row_bytes);
    ASSERT_TRUE(checkpoint->PackRows(layer, 0, absl::MakeSpan(packed)).ok());
    const auto at = [&](size_t row, size_t column) {
      return static_cast<uint8_t>(packed[row * row_bytes + column]);
    };
    for (size_t c = 0; c < width; ++c) {
      EXPECT_EQ(at(0, c), 0);
      EXPECT_EQ(at(1, c) & 0x78, 0);
      EXPECT_EQ(at(4, c), c == 0 ? 0x01 : 0x80);
      EXPECT_EQ(at(5, c) & 0x40, 0);
    }
    for (size_t c = width; c < row_bytes; ++c) {
      EXPECT_EQ(at(2, c), 90);
      EXPECT_EQ(at(3, c), 135);
      EXPECT_EQ(at(5, c), 100);
    }
  }
}

TEST_F(CheckpointWriterTest, TinyScaleRowsAreTiny) {
  ASSERT_TRUE(Write("tiny-scale", "tiny-scale", 0, 1, 1).ok());
  const absl::StatusOr<Checkpoint> checkpoint =
      Checkpoint::Open(dir_.File("tiny-scale"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const absl::StatusOr<std::vector<uint8_t>> scales =
      CopyTensor<uint8_t>(checkpoint->layers()[0].embed_scale);
  ASSERT_TRUE(scales.ok());
  const std::set<uint8_t> seen(scales->begin() + 6 * 2, scales->end());
  EXPECT_EQ(seen, (std::set<uint8_t>{93, 94, 95, 96, 97, 98, 99}));
}

TEST_F(CheckpointWriterTest, TheSameSeedMakesTheSameBytes) {
  // Tables of more than one piece, so that threads share them.
  ASSERT_TRUE(Write("one", "tiny", 40000, 9, 1).ok());
  ASSERT_TRUE(Write("three", "tiny", 40000, 9, 3).ok());
  ASSERT_TRUE(Write("other", "tiny", 40000, 10, 3).ok());
  const auto bytes_of = [&](const std::string& name) {
    std::ifstream file(dir_.File(name) + "/model-00002-of-00002.safetensors");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string one = bytes_of("one");
  EXPECT_GT(one.size(), 24u << 20);
  EXPECT_TRUE(one == bytes_of("three"));
  EXPECT_FALSE(one == bytes_of("other"));
}

TEST_F(CheckpointWriterTest, TheSumsHoldWhatIsWritten) {
  const absl::StatusOr<MadeUpModel> model = MakeUpModel("tiny", 0, 1);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_TRUE(Write("tiny", "tiny", 0, 1, 1).ok());
  uint64_t written = 0;
  for (const auto& entry : fs::directory_iterator(dir_.File("tiny"))) {
    written += entry.file_size();
  }
  EXPECT_GE(SizeOf(*model).total(), written);
  EXPECT_LT(SizeOf(*model).total(), written + 16384);
}

TEST_F(CheckpointWriterTest, StopsWhenInterrupted) {
  const absl::StatusOr<MadeUpModel> model = MakeUpModel("tiny", 0, 1);
  ASSERT_TRUE(model.ok()) << model.status();
  fs::create_directories(dir_.File("tiny"));
  ThreadPool pool({.thread_count = 1});
  uint64_t last = 0;
  const absl::Status status = WriteCheckpoint(
      *model, dir_.File("tiny"), pool,
      {.progress = [&](uint64_t done, uint64_t) { last = done; },
       .interrupted = [&] { return last > 0; }});
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_FALSE(fs::exists(dir_.File("tiny/config.json")));
}

TEST_F(CheckpointWriterTest, RefusesWhatIsAboveTheLimits) {
  EXPECT_THAT(MakeUpModel("huge", 0, 1).status(),
              IsError(StatusCode::kInvalidArgument, HasSubstr("tiny")));
  EXPECT_THAT(MakeUpModel("v41", uint64_t{1} << 32, 1).status(),
              IsError(StatusCode::kInvalidArgument, HasSubstr("4294967296")));
  EXPECT_FALSE(MakeUpModel("v41", uint64_t{1} << 30, 1).ok());
}

}  // namespace
}  // namespace engram::ctl
