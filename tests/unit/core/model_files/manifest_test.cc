#include "core/model/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/model/presets.h"
#include "tests/testing/checkpoint_maker.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using test::CheckpointMaker;
using test::IsError;
using test::IsOk;
using test::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

void NoProgress(uint64_t, uint64_t) {}

class ManifestTest : public ::testing::Test {
 protected:
  Checkpoint Write(const CheckpointMaker& maker) {
    maker.Write(dir_.path());
    auto checkpoint = Checkpoint::Open(dir_.path());
    EXPECT_THAT(checkpoint, IsOk());
    return *std::move(checkpoint);
  }

  TempDir dir_;
};

// A manifest without digests of the same layout.
absl::StatusOr<Manifest> Synthetic(absl::string_view preset,
                                   uint64_t partition_rows) {
  const EngramConfig config = *PresetConfig(preset);
  std::vector<ManifestLayer> layers;
  for (size_t i = 0; i < config.layer_ids.size(); ++i) {
    layers.push_back(
        {LayerId{config.layer_ids[i]}, config.num_embeddings[i], {}});
  }
  return Manifest::Create(
      config, *RowFormat::Create("F8_E4M3", "F8_E8M0", config.head_dim, 32),
      partition_rows, layers, "synthetic:42");
}

TEST(DigestTest, IsXxh3OfTheBytesInCanonicalOrder) {
  // The published XXH3-128 of nothing.
  EXPECT_THAT(DigestOf({}),
              ElementsAre(0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8, 0x60,
                          0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f));
}

TEST_F(ManifestTest, DigestsEveryPartition) {
  const Checkpoint checkpoint = Write(CheckpointMaker("tiny"));
  const auto manifest =
      BuildManifest(checkpoint, {.thread_count = 2}, NoProgress);
  ASSERT_THAT(manifest, IsOk());
  EXPECT_EQ(manifest->table(), "engram");
  EXPECT_EQ(manifest->source(), "checkpoint");
  EXPECT_EQ(manifest->config(), checkpoint.config());
  EXPECT_EQ(manifest->row_format(), checkpoint.row_format());
  EXPECT_EQ(manifest->partition_rows(), 256U);
  EXPECT_EQ(manifest->version().size(), 64U);
  EXPECT_EQ(*manifest->IndexOf(LayerId{14}), 1U);
  EXPECT_THAT(manifest->IndexOf(LayerId{2}),
              IsError(absl::StatusCode::kNotFound, HasSubstr("layer 2")));

  const size_t row_bytes = checkpoint.row_format().row_bytes();
  for (size_t layer = 0; layer < manifest->layers().size(); ++layer) {
    ASSERT_EQ(manifest->layers()[layer].digests.size(),
              manifest->partition_count(layer));
    uint64_t first_row = 0;
    for (uint32_t p = 0; p < manifest->partition_count(layer); ++p) {
      const uint64_t rows = manifest->RowsIn(layer, PartitionId{p});
      std::vector<std::byte> packed(rows * row_bytes);
      ASSERT_THAT(checkpoint.PackRows(layer, first_row, absl::MakeSpan(packed)),
                  IsOk());
      EXPECT_EQ(DigestOf(packed), manifest->layers()[layer].digests[p]) << p;
      first_row += rows;
    }
    EXPECT_EQ(first_row, manifest->layers()[layer].row_count);
  }
}

// More rows than one piece of the digest's pass.
TEST_F(ManifestTest, PiecesMakeTheSameDigest) {
  const Checkpoint checkpoint = Write(CheckpointMaker("odd"));
  const auto manifest =
      BuildManifest(checkpoint, {.partition_rows = 1 << 20}, NoProgress);
  ASSERT_THAT(manifest, IsOk());
  EXPECT_EQ(manifest->partition_count(0), 1U);
  const auto large = Write(CheckpointMaker("tiny"));
  const auto whole =
      BuildManifest(large, {.partition_rows = 1 << 15}, NoProgress);
  ASSERT_THAT(whole, IsOk());
  std::vector<std::byte> packed(large.layout().layers()[0].row_count *
                                large.row_format().row_bytes());
  ASSERT_GT(packed.size(), 512U << 10);
  ASSERT_THAT(large.PackRows(0, 0, absl::MakeSpan(packed)), IsOk());
  EXPECT_EQ(whole->layers()[0].digests[0], DigestOf(packed));
}

TEST_F(ManifestTest, TheSameForAnyNumberOfThreads) {
  const Checkpoint checkpoint = Write(CheckpointMaker("odd"));
  const auto one = BuildManifest(checkpoint, {.thread_count = 1}, NoProgress);
  const auto five = BuildManifest(checkpoint, {.thread_count = 5}, NoProgress);
  const auto any = BuildManifest(checkpoint, {}, NoProgress);
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(five, IsOk());
  ASSERT_THAT(any, IsOk());
  EXPECT_EQ(one->version(), five->version());
  EXPECT_EQ(one->json(), any->json());
}

TEST_F(ManifestTest, OneByteChangesTheVersion) {
  CheckpointMaker maker("odd");
  const auto before = BuildManifest(Write(maker), {}, NoProgress);
  ASSERT_THAT(before, IsOk());
  maker.Tensor("layers.3.engram.embed.scale").bytes[7] ^= std::byte{1};
  const auto after = BuildManifest(Write(maker), {}, NoProgress);
  ASSERT_THAT(after, IsOk());
  EXPECT_NE(before->version(), after->version());
  EXPECT_EQ(before->layers()[0].digests, after->layers()[0].digests);
  EXPECT_NE(before->layers()[1].digests[0], after->layers()[1].digests[0]);
}

TEST_F(ManifestTest, ProgressGrowsToTheTotal) {
  const Checkpoint checkpoint = Write(CheckpointMaker("tiny"));
  uint64_t last = 0;
  uint64_t total = 0;
  ASSERT_THAT(BuildManifest(checkpoint, {.thread_count = 3},
                            [&](uint64_t done, uint64_t of) {
                              EXPECT_GT(done, last);
                              last = done;
                              total = of;
                            }),
              IsOk());
  EXPECT_EQ(last, total);
  EXPECT_EQ(total, (25874 + 30058) * 33U);
}

TEST_F(ManifestTest, NansAreRefusedWithTheirCounts) {
  CheckpointMaker maker("tiny");
  maker.Tensor("layers.1.engram.embed.weight").bytes[500] = std::byte{0x7F};
  maker.Tensor("layers.1.engram.embed.weight").bytes[90'000] = std::byte{0xFF};
  maker.Tensor("layers.14.engram.embed.scale").bytes[30'000] = std::byte{0xFF};
  const Checkpoint checkpoint = Write(maker);
  EXPECT_THAT(
      BuildManifest(checkpoint, {}, NoProgress),
      IsError(kInvalid,
              AllOf(HasSubstr(dir_.path()),
                    HasSubstr("layer 1 has 2 NaN codes and 0 NaN scales"),
                    HasSubstr("layer 14 has 0 NaN codes and 1 NaN scales"))));
  EXPECT_THAT(BuildManifest(checkpoint, {.allow_nan = true}, NoProgress),
              IsOk());
}

TEST_F(ManifestTest, NansOfOneLayerNameOnlyThatLayer) {
  CheckpointMaker maker("tiny");
  maker.Tensor("layers.14.engram.embed.weight").bytes[0] = std::byte{0x7F};
  EXPECT_THAT(BuildManifest(Write(maker), {}, NoProgress),
              IsError(kInvalid, Not(HasSubstr("layer 1 has"))));
}

TEST_F(ManifestTest, TruncatedCheckpoint) {
  const Checkpoint checkpoint = Write(CheckpointMaker("tiny"));
  const std::string file = dir_.File("model-00002-of-00002.safetensors");
  ASSERT_EQ(truncate(file.c_str(), 4096), 0);
  EXPECT_THAT(BuildManifest(checkpoint, {.thread_count = 3}, NoProgress),
              IsError(absl::StatusCode::kDataLoss, HasSubstr(file)));
}

TEST_F(ManifestTest, PartitionSizeIsCheckedBeforeAnythingIsRead) {
  const Checkpoint checkpoint = Write(CheckpointMaker("odd"));
  EXPECT_THAT(BuildManifest(checkpoint, {.partition_rows = 100},
                            [](uint64_t, uint64_t) { ADD_FAILURE(); }),
              IsError(kInvalid, HasSubstr("partition_rows is 100, not a power "
                                          "of two")));
}

TEST_F(ManifestTest, SavedAndLoaded) {
  const auto manifest =
      BuildManifest(Write(CheckpointMaker("odd")), {}, NoProgress);
  ASSERT_THAT(manifest, IsOk());
  const std::string path = dir_.File(kManifestFileName);
  ASSERT_THAT(manifest->Save(path), IsOk());
  EXPECT_EQ(test::ReadAll(path), manifest->json());
  for (const std::string& name : dir_.List()) {
    EXPECT_THAT(name, Not(HasSubstr(".tmp")));
  }
  const auto loaded = Manifest::Load(path);
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(loaded->version(), manifest->version());
  EXPECT_EQ(loaded->json(), manifest->json());
  EXPECT_EQ(loaded->layers()[2].digests, manifest->layers()[2].digests);

  EXPECT_THAT(Manifest::Load(dir_.File("none")),
              IsError(absl::StatusCode::kNotFound, HasSubstr("none")));
  EXPECT_THAT(Manifest::Load(dir_.Write("bad", "{}")),
              IsError(kInvalid, HasSubstr("/bad: ")));
  EXPECT_THAT(manifest->Save(dir_.File("no/where")),
              IsError(absl::StatusCode::kNotFound, HasSubstr("no/where")));
}

// Changing these bytes changes the version of every table: never by accident.
TEST(ManifestTextTest, BytesAndVersionAreStable) {
  const auto manifest = Synthetic("tiny", 32768);
  ASSERT_THAT(manifest, IsOk());
  EXPECT_EQ(manifest->json(), R"({
 "format": "engram-manifest/1",
 "table": "engram",
 "source": "synthetic:42",
 "config": )" + ConfigToJson(manifest->config()) +
                                  R"(,
 "row_format": {"code_dtype": "F8_E4M3", "scale_dtype": "F8_E8M0", "width": 32, "block_size": 32},
 "partition_rows": 32768,
 "layers": [
  {"layer_id": 1,
   "row_count": 25874,
   "digests": []},
  {"layer_id": 14,
   "row_count": 30058,
   "digests": []}]
}
)");
  EXPECT_EQ(manifest->version(),
            "3cded4978d56017042a4eccf9c330ea003051eddf52bb5754c5f5363d6c498a3");
}

TEST(ManifestTextTest, SyntheticTablesOfTheTrueLayout) {
  const auto manifest = Synthetic("v41", 65536);
  ASSERT_THAT(manifest, IsOk());
  EXPECT_EQ(manifest->partition_count(0) + manifest->partition_count(1),
            11720U);
  EXPECT_EQ(manifest->RowsIn(0, PartitionId{0}), 65536U);
}

struct BadManifest {
  std::string from;
  std::string to;
  std::string message;
};

TEST_F(ManifestTest, BadManifestsAreRefusedWithAClearMessage) {
  const auto good = BuildManifest(Write(CheckpointMaker("odd")),
                                  {.partition_rows = 4096}, NoProgress);
  ASSERT_THAT(good, IsOk());
  const std::string digest =
      good->json().substr(good->json().find("\"digests\": [") + 17, 34);
  const std::vector<BadManifest> cases = {
      {"engram-manifest/1", "engram-manifest/2", "'engram-manifest/2'"},
      {"\"table\": \"engram\"", "\"table\": \"a/b\"", "table is 'a/b'"},
      {"\"table\": \"engram\"", "\"table\": \"\"", "table is ''"},
      {"\"table\": \"engram\"", "\"table\": 3", "'table' is a number"},
      {"\"source\": \"checkpoint\"", "\"source\": \"disk\"",
       "source is 'disk'"},
      {"\"source\": \"checkpoint\"", "\"source\": \"synthetic:\"",
       "source is 'synthetic:'"},
      {"\"source\": \"checkpoint\"", "\"source\": \"synthetic:01\"",
       "source is 'synthetic:01'"},
      {"\"source\": \"checkpoint\"", "\"source\": \"synthetic:7\"",
       "1 digests, 0 are needed for 1 synthetic partitions"},
      {"\"config\": {", "\"config\": [], \"x\": {",
       "'config' is not an object"},
      {"\"engram_n_heads\":4", "\"engram_n_heads\":0", "engram_n_heads is 0"},
      {"\"engram_n_heads\":4", "\"engram_n_heads\":8", "0"},
      {"\"row_format\": {", "\"row_format\": 1, \"x\": {",
       "'row_format' is not an object"},
      {"F8_E4M3", "I8", "codes of I8"},
      {"\"width\": 64", "\"width\": 96", "engram_head_dim 64"},
      {"\"block_size\": 32", "\"block_size\": 0", "block size 0"},
      {"\"partition_rows\": 4096", "\"partition_rows\": 4095",
       "partition_rows is 4095, not a power of two"},
      {"\"partition_rows\": 4096", "\"partition_rows\": 0",
       "partition_rows is 0"},
      {"\"partition_rows\": 4096", "\"partition_rows\": 8589934592",
       "partition_rows is 8589934592"},
      {"\"partition_rows\": 4096", "\"partition_rows\": 2048",
       "1 digests, 2 are needed for 2 partitions"},
      {"\"layers\": [", "\"layers\": [], \"x\": [",
       "0 layers, the config gives 3"},
      {"\"layers\": [", "\"layers\": {}, \"x\": [", "'layers' is not a list"},
      {"\"layer_id\": 3", "\"layer_id\": 4",
       "layers[1]: layer_id is 4, the config gives 3"},
      {"\"row_count\": 2194", "\"row_count\": 2195",
       "layers[0]: layer 0 has 2195 rows, the config gives 2194"},
      {"\"row_count\": 2194", "\"row_count\": -1", "'row_count' is -1"},
      {"\"digests\": [", "\"digests\": [\"00\",", "2 digests, 1 are needed"},
      {digest, "\"00\"", "a digest is '00', not 32 hex digits"},
      {digest, "\"zz" + digest.substr(3), "not 32 hex digits"},
      {digest, "7", "a digest is number"},
      {"\"table\"", "\"format\": \"x\", \"table\"", "'format' stands twice"},
      {"\n}\n", "\n", "not JSON"},
  };
  for (const BadManifest& bad : cases) {
    SCOPED_TRACE(bad.to);
    const std::string text =
        absl::StrReplaceAll(good->json(), {{bad.from, bad.to}});
    ASSERT_NE(text, good->json()) << "nothing was replaced";
    EXPECT_THAT(Manifest::Parse(text),
                IsError(kInvalid, HasSubstr(bad.message)));
  }
}

TEST(ManifestTextTest, NotAManifest) {
  EXPECT_THAT(Manifest::Parse(""), IsError(kInvalid, HasSubstr("not JSON")));
  EXPECT_THAT(Manifest::Parse("[]"), IsError(kInvalid, HasSubstr("object")));
  EXPECT_THAT(Manifest::Parse(std::string(65 << 20, ' ')),
              IsError(kInvalid, HasSubstr("the limit is 67108864")));
}

// Space in the text is another version of the same table.
TEST(ManifestTextTest, VersionIsOfTheBytes) {
  const auto manifest = Synthetic("tiny", 1024);
  ASSERT_THAT(manifest, IsOk());
  const auto other = Manifest::Parse(manifest->json() + " ");
  ASSERT_THAT(other, IsOk());
  EXPECT_NE(other->version(), manifest->version());
  EXPECT_EQ(other->config(), manifest->config());
}

TEST_F(ManifestTest, ManifestOfAnotherCheckpoint) {
  CheckpointMaker maker("odd");
  const Checkpoint checkpoint = Write(maker);
  const auto manifest = BuildManifest(checkpoint, {}, NoProgress);
  ASSERT_THAT(manifest, IsOk());
  EXPECT_THAT(CheckManifestMatches(*manifest, checkpoint), IsOk());

  constexpr auto kFailed = absl::StatusCode::kFailedPrecondition;
  maker.config().norm_eps = 1e-5;
  EXPECT_THAT(
      CheckManifestMatches(*manifest, Write(maker)),
      IsError(kFailed, AllOf(HasSubstr(manifest->version()),
                             HasSubstr("norm_eps is 1e-06 in the manifest and "
                                       "1e-05 in the checkpoint"))));
  maker.config().norm_eps = manifest->config().norm_eps;
  maker.config().num_embeddings.clear();
  EXPECT_THAT(CheckManifestMatches(*manifest, Write(maker)),
              IsError(kFailed, HasSubstr("engram_num_embeddings")));

  TempDir other;
  CheckpointMaker("tiny").Write(other.path());
  const auto tiny = Checkpoint::Open(other.path());
  ASSERT_THAT(tiny, IsOk());
  EXPECT_THAT(CheckManifestMatches(*manifest, *tiny),
              IsError(kFailed, HasSubstr(" in the checkpoint")));
  EXPECT_THAT(CheckManifestMatches(*Synthetic("tiny", 1024), *tiny),
              IsError(kFailed, HasSubstr("its source is synthetic:42")));

  // The same config with rows in other blocks.
  CheckpointMaker blocks("odd");
  for (const char* layer : {"0", "3", "7"}) {
    auto& scale =
        blocks.Tensor(absl::StrCat("layers.", layer, ".engram.embed.scale"));
    scale.shape[1] *= 2;
    scale.bytes.resize(scale.bytes.size() * 2);
  }
  EXPECT_THAT(CheckManifestMatches(*manifest, Write(blocks)),
              IsError(kFailed, HasSubstr("blocks of 32 in the manifest")));
}

TEST(PartitionRowsTest, DefaultGivesAtLeast64Partitions) {
  const auto rows = [](std::vector<uint64_t> counts) {
    return DefaultPartitionRows(counts);
  };
  EXPECT_EQ(rows({384'006'166, 384'016'682}), 65536U);
  EXPECT_EQ(rows({25874, 30058}), 256U);
  EXPECT_EQ(rows({4'194'304}), 65536U);  // exactly 64
  EXPECT_EQ(rows({63 * 65536}), 32768U);
  EXPECT_EQ(rows({63 * 65536 + 1}), 65536U);  // 63 whole and one short
  EXPECT_EQ(rows({1 << 30, 64}), 1U);
  EXPECT_EQ(rows({10}), 1U);
}

TEST(PartitionRowsTest, PartitionsAreBounded) {
  const std::vector<uint64_t> rows = {uint64_t{1} << 32};
  EXPECT_THAT(CheckPartitionRows(4096, rows), IsOk());
  EXPECT_THAT(CheckPartitionRows(2048, rows),
              IsError(kInvalid, HasSubstr("more than 1048576 partitions")));
}

}  // namespace
}  // namespace engram
