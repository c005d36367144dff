#include "core/model/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/checkpoint_index.h"
#include "tests/testing/checkpoint_maker.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using test::CheckpointMaker;
using test::IsError;
using test::IsOk;
using test::MadeTensor;
using test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;
constexpr auto kOutOfRange = absl::StatusCode::kOutOfRange;

constexpr char kFile1[] = "model-00001-of-00002.safetensors";
constexpr char kFile2[] = "model-00002-of-00002.safetensors";
constexpr char kWeight[] = "layers.1.engram.embed.weight";
constexpr char kScale[] = "layers.1.engram.embed.scale";

// What a packed row must be, straight from the two tensors.
std::vector<std::byte> ExpectedRow(const LayerTensors& layer,
                                   const RowFormat& format, uint64_t row) {
  std::vector<std::byte> packed(format.row_bytes());
  std::memcpy(packed.data(),
              layer.embed_weight.bytes.data() + row * format.code_bytes(),
              format.code_bytes());
  std::memcpy(packed.data() + format.code_bytes(),
              layer.embed_scale.bytes.data() + row * format.scale_bytes(),
              format.scale_bytes());
  return packed;
}

class CheckpointTest : public ::testing::Test {
 protected:
  absl::StatusOr<Checkpoint> WriteAndOpen() {
    maker_.Write(dir_.path());
    return Checkpoint::Open(dir_.path());
  }

  CheckpointMaker maker_{"tiny"};
  TempDir dir_;
};

TEST(CheckpointGoldenTest, OpensTheStoredCheckpoints) {
  for (const char* name : {"tiny", "odd", "tiny-scale"}) {
    SCOPED_TRACE(name);
    const auto checkpoint = Checkpoint::Open(
        absl::StrCat(ENGRAM_SOURCE_DIR "/tests/golden/data/", name));
    ASSERT_THAT(checkpoint, IsOk());
    ASSERT_EQ(checkpoint->layers().size(),
              checkpoint->config().layer_ids.size());
    EXPECT_EQ(checkpoint->row_format().width, checkpoint->config().head_dim);
    EXPECT_EQ(checkpoint->row_format().block_size, 32U);
    for (size_t i = 0; i < checkpoint->layers().size(); ++i) {
      const LayerTensors& layer = checkpoint->layers()[i];
      EXPECT_EQ(layer.embed_weight.shape[0],
                checkpoint->layout().layers()[i].row_count);
      EXPECT_EQ(layer.wkv_weight.shape[0], checkpoint->config().wkv_out());
    }
  }
}

TEST(CheckpointGoldenTest, PackedRowsAreCodesThenScales) {
  for (const char* name : {"tiny", "odd"}) {
    SCOPED_TRACE(name);
    const auto checkpoint = Checkpoint::Open(
        absl::StrCat(ENGRAM_SOURCE_DIR "/tests/golden/data/", name));
    ASSERT_THAT(checkpoint, IsOk());
    const RowFormat& format = checkpoint->row_format();
    for (size_t i = 0; i < checkpoint->layers().size(); ++i) {
      const uint64_t rows = checkpoint->layout().layers()[i].row_count;
      std::vector<std::byte> packed(rows * format.row_bytes());
      ASSERT_THAT(checkpoint->PackRows(i, 0, absl::MakeSpan(packed)), IsOk());
      for (uint64_t row = 0; row < rows; ++row) {
        ASSERT_EQ(std::memcmp(
                      packed.data() + row * format.row_bytes(),
                      ExpectedRow(checkpoint->layers()[i], format, row).data(),
                      format.row_bytes()),
                  0)
            << row;
      }
      EXPECT_FALSE(CountDefects(format, packed).any());
    }
  }
}

TEST_F(CheckpointTest, GatherKeepsOrderAndDuplicates) {
  const auto checkpoint = WriteAndOpen();
  ASSERT_THAT(checkpoint, IsOk());
  const RowFormat& format = checkpoint->row_format();
  const uint64_t rows = checkpoint->layout().layers()[1].row_count;
  std::mt19937 random(7);
  std::vector<RowId> ids(1500);  // more than one chunk
  for (RowId& id : ids) id = random() % rows;
  ids[3] = ids[4] = static_cast<RowId>(rows - 1);
  std::vector<std::byte> out(ids.size() * format.row_bytes());
  ASSERT_THAT(checkpoint->GatherRows(1, ids, absl::MakeSpan(out)), IsOk());
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_EQ(
        std::memcmp(out.data() + i * format.row_bytes(),
                    ExpectedRow(checkpoint->layers()[1], format, ids[i]).data(),
                    format.row_bytes()),
        0)
        << i;
  }
}

TEST_F(CheckpointTest, PackAndGatherCheckTheirRange) {
  const auto checkpoint = WriteAndOpen();
  ASSERT_THAT(checkpoint, IsOk());
  const size_t row_bytes = checkpoint->row_format().row_bytes();
  const uint64_t rows = checkpoint->layout().layers()[0].row_count;
  std::vector<std::byte> out(2 * row_bytes, std::byte{0xAB});
  const absl::Span<std::byte> two = absl::MakeSpan(out);
  EXPECT_THAT(checkpoint->PackRows(0, rows - 2, two), IsOk());
  out.assign(out.size(), std::byte{0xAB});
  EXPECT_THAT(checkpoint->PackRows(0, rows - 1, two),
              IsError(kOutOfRange, HasSubstr(absl::StrCat(
                                       "row ", rows, " of layer 1, which has ",
                                       rows, " rows"))));
  EXPECT_THAT(checkpoint->PackRows(0, UINT64_MAX, two),
              IsError(kOutOfRange, HasSubstr("18446744073709551615")));
  EXPECT_THAT(checkpoint->PackRows(2, 0, two),
              IsError(kOutOfRange, HasSubstr("layer index 2 of 2 layers")));
  EXPECT_THAT(checkpoint->PackRows(0, 0, two.first(row_bytes + 1)),
              IsError(kInvalid, HasSubstr("not whole rows")));
  const std::vector<RowId> ids = {0, static_cast<RowId>(rows)};
  EXPECT_THAT(checkpoint->GatherRows(0, ids, two),
              IsError(kOutOfRange, HasSubstr(absl::StrCat("row ", rows))));
  EXPECT_THAT(checkpoint->GatherRows(0, ids, two.first(row_bytes)),
              IsError(kInvalid, HasSubstr("for 2 rows")));
  EXPECT_THAT(checkpoint->GatherRows(9, {}, {}),
              IsError(kOutOfRange, HasSubstr("layer index 9")));
  // Nothing was written by those that failed.
  EXPECT_EQ(out, std::vector<std::byte>(out.size(), std::byte{0xAB}));
  EXPECT_THAT(checkpoint->GatherRows(0, {}, {}), IsOk());
  EXPECT_THAT(checkpoint->PackRows(0, rows, {}), IsOk());
}

TEST_F(CheckpointTest, TruncatedWhileMappedIsDataLoss) {
  const auto checkpoint = WriteAndOpen();
  ASSERT_THAT(checkpoint, IsOk());
  ASSERT_EQ(truncate(dir_.File(kFile1).c_str(), 4096), 0);
  const uint64_t rows = checkpoint->layout().layers()[0].row_count;
  std::vector<std::byte> out(rows * checkpoint->row_format().row_bytes());
  const auto lost = IsError(absl::StatusCode::kDataLoss,
                            AllOf(HasSubstr(kFile1), HasSubstr("truncated")));
  EXPECT_THAT(checkpoint->PackRows(0, 0, absl::MakeSpan(out)), lost);
  std::vector<RowId> ids(rows);
  std::iota(ids.begin(), ids.end(), 0);
  EXPECT_THAT(checkpoint->GatherRows(0, ids, absl::MakeSpan(out)), lost);
  // The other file is whole.
  EXPECT_THAT(checkpoint->PackRows(1, 0, absl::MakeSpan(out)), IsOk());
}

TEST_F(CheckpointTest, CodesAndScalesMayStandInTwoFiles) {
  maker_.Tensor(kScale).file = "scales.safetensors";
  maker_.index()[kScale] = "scales.safetensors";
  const auto checkpoint = WriteAndOpen();
  ASSERT_THAT(checkpoint, IsOk());
  std::vector<std::byte> out(checkpoint->row_format().row_bytes());
  ASSERT_THAT(checkpoint->PackRows(0, 9, absl::MakeSpan(out)), IsOk());
  EXPECT_EQ(out,
            ExpectedRow(checkpoint->layers()[0], checkpoint->row_format(), 9));
  ASSERT_EQ(truncate(dir_.File("scales.safetensors").c_str(), 0), 0);
  EXPECT_THAT(
      checkpoint->PackRows(0, 9, absl::MakeSpan(out)),
      IsError(absl::StatusCode::kDataLoss, HasSubstr("scales.safetensors")));
}

TEST_F(CheckpointTest, WithoutAnIndexThereIsOneFile) {
  for (MadeTensor& tensor : maker_.tensors()) tensor.file = "model.safetensors";
  maker_.index().clear();
  EXPECT_THAT(WriteAndOpen(), IsOk());
}

TEST_F(CheckpointTest, WithoutAnIndexAndWithoutTheFile) {
  maker_.index().clear();
  EXPECT_THAT(WriteAndOpen(),
              IsError(kNotFound, AllOf(HasSubstr("/model.safetensors"),
                                       HasSubstr("layers.1.engram."))));
}

// Files of other tensors may be missing or broken: they are never opened.
TEST_F(CheckpointTest, OnlyFilesWithEngramTensorsAreOpened) {
  maker_.index()["model.embed.weight"] = "gone.safetensors";
  maker_.index()["lm_head.weight"] = "broken.safetensors";
  dir_.Write("broken.safetensors", "?");
  EXPECT_THAT(WriteAndOpen(), IsOk());
}

TEST_F(CheckpointTest, ConfigIsMissing) {
  EXPECT_THAT(Checkpoint::Open(dir_.path()),
              IsError(kNotFound, HasSubstr("config.json")));
}

TEST_F(CheckpointTest, LayerIsMissingFromTheIndex) {
  std::erase_if(maker_.index(), [](const auto& entry) {
    return absl::string_view(entry.first).substr(0, 10) == "layers.14.";
  });
  EXPECT_THAT(WriteAndOpen(),
              IsError(kNotFound, AllOf(HasSubstr("index.json has no tensor"),
                                       HasSubstr("layers.14.engram."))));
}

TEST_F(CheckpointTest, LayerIsMissingFromItsFile) {
  std::erase_if(maker_.tensors(), [](const MadeTensor& tensor) {
    return tensor.name == "layers.14.engram.q_weight";
  });
  EXPECT_THAT(
      WriteAndOpen(),
      IsError(kNotFound, AllOf(HasSubstr(kFile2),
                               HasSubstr("'layers.14.engram.q_weight'"))));
}

TEST_F(CheckpointTest, FileThatTheIndexNamesIsMissing) {
  maker_.index()[kWeight] = "gone.safetensors";
  EXPECT_THAT(WriteAndOpen(),
              IsError(kNotFound, AllOf(HasSubstr("gone.safetensors"),
                                       HasSubstr(kWeight))));
}

TEST_F(CheckpointTest, TensorInTwoFiles) {
  MadeTensor copy = maker_.Tensor(kWeight);
  copy.file = kFile2;
  maker_.tensors().push_back(copy);
  EXPECT_THAT(
      WriteAndOpen(),
      IsError(kInvalid, AllOf(HasSubstr(kWeight), HasSubstr(kFile1),
                              HasSubstr(kFile2), HasSubstr(" and in "))));
}

TEST_F(CheckpointTest, TensorInAnotherFileThanTheIndexSays) {
  maker_.index()[kWeight] = kFile2;
  EXPECT_THAT(WriteAndOpen(),
              IsError(kInvalid, HasSubstr(absl::StrCat(
                                    "'", kWeight, "' stands in ", kFile1,
                                    ", the index says in ", kFile2))));
}

TEST_F(CheckpointTest, TruncatedFile) {
  maker_.Write(dir_.path());
  ASSERT_EQ(truncate(dir_.File(kFile2).c_str(), 100'000), 0);
  EXPECT_THAT(Checkpoint::Open(dir_.path()),
              IsError(kInvalid,
                      AllOf(HasSubstr(kFile2), HasSubstr("'layers.14.engram."),
                            HasSubstr("truncated"))));
}

TEST_F(CheckpointTest, WrongRowCount) {
  MadeTensor& weight = maker_.Tensor(kWeight);
  const uint64_t rows = weight.shape[0];
  weight.shape[0] = rows - 1;
  weight.bytes.resize(weight.bytes.size() - weight.shape[1]);
  EXPECT_THAT(
      WriteAndOpen(),
      IsError(kInvalid, AllOf(HasSubstr(kFile1), HasSubstr(kWeight),
                              HasSubstr(absl::StrCat("[", rows - 1, ", 32]")),
                              HasSubstr(absl::StrCat("the config gives [", rows,
                                                     ", 32]")))));
}

TEST_F(CheckpointTest, RowCountThatTheConfigDoesNotGive) {
  ++maker_.config().num_embeddings[1];
  EXPECT_THAT(WriteAndOpen(), IsError(kInvalid, HasSubstr(dir_.path())));
}

TEST_F(CheckpointTest, ShapesOfTheOtherTensors) {
  for (const char* name :
       {"embed.scale", "wkv.weight", "wkv.scale", "q_weight", "k_weight"}) {
    SCOPED_TRACE(name);
    CheckpointMaker maker("tiny");
    MadeTensor& tensor = maker.Tensor(absl::StrCat("layers.14.engram.", name));
    tensor.shape = {tensor.shape[0] * tensor.shape[1]};
    TempDir dir;
    maker.Write(dir.path());
    EXPECT_THAT(
        Checkpoint::Open(dir.path()),
        IsError(kInvalid, AllOf(HasSubstr(absl::StrCat("engram.", name, "'")),
                                HasSubstr("the config gives"))));
  }
}

TEST_F(CheckpointTest, UnsupportedDtypesAreNamed) {
  maker_.Tensor(kWeight).dtype = "I8";
  maker_.Tensor(kScale).dtype = "F32";
  maker_.Tensor(kScale).bytes.resize(4 * maker_.Tensor(kScale).bytes.size());
  EXPECT_THAT(WriteAndOpen(),
              IsError(kInvalid, AllOf(HasSubstr(kWeight), HasSubstr("I8"))));
  maker_.Tensor(kWeight).dtype = "F8_E4M3";
  EXPECT_THAT(WriteAndOpen(), IsError(kInvalid, HasSubstr("F32")));
}

TEST_F(CheckpointTest, UnsupportedDtypesOfTheWeights) {
  maker_.Tensor("layers.14.engram.wkv.weight").dtype = "F8_E5M2";
  EXPECT_THAT(WriteAndOpen(), IsError(kInvalid, AllOf(HasSubstr("wkv.weight"),
                                                      HasSubstr("F8_E5M2"))));
}

// Blocks of 16 features: the row format is data.
TEST_F(CheckpointTest, OtherBlockSizes) {
  for (const char* layer : {"layers.1", "layers.14"}) {
    MadeTensor& scale =
        maker_.Tensor(absl::StrCat(layer, ".engram.embed.scale"));
    scale.shape[1] = 2;
    scale.bytes.resize(scale.bytes.size() * 2, std::byte{115});
  }
  const auto checkpoint = WriteAndOpen();
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_EQ(checkpoint->row_format().block_size, 16U);
  EXPECT_EQ(checkpoint->row_format().row_bytes(), 34U);
  std::vector<std::byte> out(34);
  ASSERT_THAT(checkpoint->PackRows(0, 5, absl::MakeSpan(out)), IsOk());
  EXPECT_EQ(out,
            ExpectedRow(checkpoint->layers()[0], checkpoint->row_format(), 5));

  // All layers have one format.
  MadeTensor& scale = maker_.Tensor("layers.14.engram.embed.scale");
  scale.shape[1] = 1;
  scale.bytes.resize(scale.bytes.size() / 2);
  EXPECT_THAT(WriteAndOpen(),
              IsError(kInvalid, HasSubstr("blocks of 32 features, the first "
                                          "layer of 16")));
}

TEST_F(CheckpointTest, BlocksThatDoNotDivideTheRow) {
  MadeTensor& scale = maker_.Tensor(kScale);
  scale.shape[1] = 5;
  scale.bytes.resize(scale.bytes.size() * 5);
  EXPECT_THAT(
      WriteAndOpen(),
      IsError(kInvalid, AllOf(HasSubstr(kScale), HasSubstr("5 scales a row"))));
}

TEST(CheckpointIndexTest, RefusesNamesThatLeaveTheDirectory) {
  for (const char* name : {"../x.safetensors", "/etc/passwd", "a/b", "..", ".",
                           "", "a..b", "a\\u0000b"}) {
    SCOPED_TRACE(name);
    EXPECT_THAT(ParseCheckpointIndex(
                    absl::StrCat(R"({"weight_map":{"t":")", name, "\"}}")),
                IsError(kInvalid, AllOf(HasSubstr("tensor 't'"),
                                        HasSubstr("not a file name"))));
  }
}

TEST(CheckpointIndexTest, RefusesWhatIsNotAnIndex) {
  EXPECT_THAT(ParseCheckpointIndex("[]"),
              IsError(kInvalid, HasSubstr("not an object")));
  EXPECT_THAT(ParseCheckpointIndex("{}"),
              IsError(kInvalid, HasSubstr("'weight_map' is missing")));
  EXPECT_THAT(ParseCheckpointIndex(R"({"weight_map":[]})"),
              IsError(kInvalid, HasSubstr("weight_map is not an object")));
  EXPECT_THAT(ParseCheckpointIndex(R"({"weight_map":{"t":1}})"),
              IsError(kInvalid, HasSubstr("the file number")));
  EXPECT_THAT(
      ParseCheckpointIndex(R"({"weight_map":{"t":"a","u":"a","t":"b"}})"),
      IsError(kInvalid, HasSubstr("'t' stands twice")));
  EXPECT_THAT(ParseCheckpointIndex(R"({"weight_map":{"t":)"),
              IsError(kInvalid, HasSubstr("not JSON")));
}

TEST_F(CheckpointTest, BadIndexIsNamed) {
  maker_.Write(dir_.path());
  dir_.Write("model.safetensors.index.json", "{");
  EXPECT_THAT(Checkpoint::Open(dir_.path()),
              IsError(kInvalid, HasSubstr("model.safetensors.index.json: ")));
}

// Every value of a byte in every place, against the plain definition.
TEST(CountDefectsTest, CountsEveryNan) {
  for (const uint32_t width : {4, 32, 40, 36, 4092}) {
    const auto format = RowFormat::Create("F8_E4M3", "F8_E8M0", width, 4);
    ASSERT_THAT(format, IsOk());
    std::mt19937 random(width);
    std::vector<std::byte> rows(200 * format->row_bytes());
    RowDefects expected;
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint32_t draw = random();
      const uint8_t value = (draw & 0x700) == 0 ? 0x7F | (draw & 0x80)
                                                : static_cast<uint8_t>(draw);
      rows[i] = std::byte{value};
      if (i % format->row_bytes() < width) {
        expected.nan_codes += value == 0x7F || value == 0xFF;
      } else {
        expected.nan_scales += value == 0xFF;
      }
    }
    const RowDefects defects = CountDefects(*format, rows);
    EXPECT_EQ(defects.nan_codes, expected.nan_codes);
    EXPECT_EQ(defects.nan_scales, expected.nan_scales);
    EXPECT_GT(defects.nan_scales, 0U);
    EXPECT_TRUE(defects.any());
  }
}

}  // namespace
}  // namespace engram
