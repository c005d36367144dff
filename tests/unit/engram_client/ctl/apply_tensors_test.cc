#include "engram_client/ctl/apply_tensors.h"

#include <cstring>
#include <numeric>

#include "tests/testing/status_matchers.h"
#include "tests/unit/engram_client/ctl/test_file.h"

namespace engram::ctl {
namespace {

using absl::StatusCode;
using test::IsError;
using testing::HasSubstr;

ModelInfo TestModel() {
  ModelInfo model;
  model.config.hc_mult = 2;
  model.config.dim = 3;
  model.config.max_ngram_size = 4;
  model.layers = {LayerId{1}, LayerId{14}};
  return model;
}

// Two sequences of three tokens; six bf16 or float32 values a position.
const std::vector<int64_t> kTokens = {1, 2, 3, 4, 5, 6};

class ApplyTensorsTest : public testing::Test {
 protected:
  ApplyTensorsTest() : bf16_(36), f32_(36) {
    std::iota(bf16_.begin(), bf16_.end(), 0);
    std::iota(f32_.begin(), f32_.end(), 0.0F);
  }

  absl::StatusOr<ApplyInput> Read(std::vector<OutputTensor> tensors) {
    tensors.push_back({{"tokens", "I64", {2, 3}}, BytesOf(kTokens)});
    return ReadApplyInput(MakeFile(dir_, std::move(tensors)), TestModel());
  }
  OutputTensor Bf16(const std::string& name) {
    return {{name, "BF16", {2, 3, 2, 3}}, BytesOf(bf16_)};
  }
  OutputTensor F32(const std::string& name) {
    return {{name, "F32", {2, 3, 2, 3}}, BytesOf(f32_)};
  }

  test::TempDir dir_;
  std::vector<uint16_t> bf16_;
  std::vector<float> f32_;
};

TEST_F(ApplyTensorsTest, LayersComeInTheOrderOfTheModel) {
  const absl::StatusOr<ApplyInput> input =
      Read({Bf16("layers.14.streams_in"), Bf16("layers.1.streams_in")});
  ASSERT_TRUE(input.ok()) << input.status();
  ASSERT_EQ(input->layers.size(), 2);
  EXPECT_EQ(input->layers[0].layer, LayerId{1});
  EXPECT_EQ(input->layers[1].layer, LayerId{14});
  EXPECT_EQ(input->dtype, StepDtype::kBf16);
}

TEST_F(ApplyTensorsTest, OneLayerIsEnough) {
  const absl::StatusOr<ApplyInput> input =
      Read({F32("layers.14.streams_in"), F32("layers.14.streams_out")});
  ASSERT_TRUE(input.ok()) << input.status();
  ASSERT_EQ(input->layers.size(), 1);
  EXPECT_EQ(input->dtype, StepDtype::kF32);
}

TEST_F(ApplyTensorsTest, RefusesOtherStreams) {
  EXPECT_THAT(Read({}).status(),
              IsError(StatusCode::kInvalidArgument,
                      HasSubstr("no tensor layers.1.streams_in or "
                                "layers.14.streams_in")));
  EXPECT_THAT(
      Read({Bf16("layers.1.streams_in"), Bf16("layers.3.streams_in")}).status(),
      IsError(StatusCode::kInvalidArgument,
              HasSubstr("no layer of tensor layers.3.streams_in")));
  EXPECT_THAT(
      Read({Bf16("layers.1.streams_in"), F32("layers.14.streams_in")}).status(),
      IsError(StatusCode::kInvalidArgument, HasSubstr("streams of one dtype")));
  EXPECT_THAT(
      Read({{{"layers.1.streams_in", "BF16", {3, 2, 2, 3}}, BytesOf(bf16_)}})
          .status(),
      IsError(StatusCode::kInvalidArgument,
              HasSubstr("has the shape [3, 2, 2, 3], not [2, 3, 2, 3]")));
  EXPECT_THAT(
      Read({{{"layers.1.streams_in", "F16", {2, 3, 2, 3}}, BytesOf(bf16_)}})
          .status(),
      IsError(StatusCode::kInvalidArgument,
              HasSubstr("is F16, not BF16 or F32")));
}

TEST_F(ApplyTensorsTest, ChunksTakenOutAndPutBackMakeTheWhole) {
  const absl::StatusOr<ApplyInput> input = Read({Bf16("layers.1.streams_in")});
  ASSERT_TRUE(input.ok()) << input.status();
  LayerBuffers whole =
      MakeBuffers(TestModel(), StepDtype::kBf16, StepReturn::kStreams, 6);
  std::memset(whole.streams.data(), 0xEE, whole.streams.size());
  for (const Chunk& chunk : {Chunk{1, 2}, Chunk{0, 1}}) {
    absl::StatusOr<std::vector<std::byte>> part =
        ChunkOf(input->layers[0].streams, chunk);
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_EQ(part->size(),
              2 * chunk.count * StreamBytes(TestModel(), input->dtype));
    PlaceChunk({.streams = *std::move(part)}, input->tokens, chunk, whole);
  }
  EXPECT_TRUE(absl::MakeConstSpan(whole.streams) == BytesOf(bf16_));
}

TEST_F(ApplyTensorsTest, AChunkHasEverySequence) {
  const absl::StatusOr<ApplyInput> input = Read({Bf16("layers.1.streams_in")});
  ASSERT_TRUE(input.ok()) << input.status();
  const absl::StatusOr<std::vector<std::byte>> part =
      ChunkOf(input->layers[0].streams, {1, 1});
  ASSERT_TRUE(part.ok()) << part.status();
  const std::vector<uint16_t> wanted = {6,  7,  8,  9,  10, 11,
                                        24, 25, 26, 27, 28, 29};
  EXPECT_TRUE(absl::MakeConstSpan(*part) == BytesOf(wanted));
}

TEST_F(ApplyTensorsTest, ContributionIsWrittenAsGateAndValue) {
  const absl::StatusOr<ApplyInput> input = Read({F32("layers.14.streams_in")});
  ASSERT_TRUE(input.ok()) << input.status();
  LayerBuffers whole =
      MakeBuffers(TestModel(), input->dtype, StepReturn::kContribution, 6);
  for (const Chunk& chunk : {Chunk{0, 2}, Chunk{2, 1}}) {
    LayerBuffers step = MakeBuffers(TestModel(), input->dtype,
                                    StepReturn::kContribution, 2 * chunk.count);
    std::fill(step.gate.begin(), step.gate.end(), chunk.count);
    std::fill(step.value.begin(), step.value.end(), chunk.count);
    PlaceChunk(step, input->tokens, chunk, whole);
  }
  const std::string path = dir_.File("out.safetensors");
  ASSERT_TRUE(WriteResults(path, TestModel(), *input, StepReturn::kContribution,
                           {whole})
                  .ok());
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->tensors().size(), 2);
  const TensorView gate = *file->Find("layers.14.gate");
  EXPECT_EQ(gate.dtype, "F32");
  EXPECT_EQ(gate.shape, (std::vector<uint64_t>{2, 3, 2}));
  EXPECT_EQ(*CopyTensor<float>(gate),
            (std::vector<float>{2, 2, 2, 2, 1, 1, 2, 2, 2, 2, 1, 1}));
  const TensorView value = *file->Find("layers.14.value");
  EXPECT_EQ(value.dtype, "BF16");
  EXPECT_EQ(value.shape, (std::vector<uint64_t>{2, 3, 3}));
}

}  // namespace
}  // namespace engram::ctl
