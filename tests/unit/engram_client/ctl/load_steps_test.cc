#include "engram_client/ctl/load_steps.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/notification.h"
#include "core/model/presets.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace engram::ctl {
namespace {

using absl::StatusCode;
using test::IsError;
using test::IsOk;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Lt;
using testing::SizeIs;

// A "step" that depends on every input: a byte of the streams plus the tokens.
uint8_t Mixed(const StepSequence& sequence, std::byte in, size_t at) {
  const uint32_t token = sequence.token_ids[at % sequence.token_ids.size()];
  return static_cast<uint8_t>(static_cast<uint8_t>(in) + token +
                              sequence.lookback.size());
}

class FakeWorkers final : public ComputeClient {
 public:
  FakeWorkers() : model_{.version = "v"} {
    model_.config = PresetConfig("tiny").value();
    for (const uint32_t layer : model_.config.layer_ids) {
      model_.layers.push_back(LayerId{layer});
    }
    model_.max_tokens_per_step = 64;
  }

  const ModelInfo& model() const override { return model_; }

  absl::Status Apply(absl::Span<const StepSequence> sequences, StepDtype dtype,
                     StepReturn what, absl::Span<const StepLayerIo> layers,
                     absl::Time /*deadline*/) override {
    EXPECT_THAT(sequences, SizeIs(1));
    EXPECT_EQ(dtype, StepDtype::kBf16);
    for (const StepLayerIo& io : layers) RunLayer(sequences[0], what, io);
    if (spoil) spoil(layers);
    return status;
  }

  class FakeStep final : public Step {
   public:
    FakeStep(FakeWorkers* workers, StepSequence sequence, StepReturn what)
        : workers_(*workers), sequence_(std::move(sequence)), what_(what) {}
    absl::Status Layer(const StepLayerIo& io) override {
      workers_.RunLayer(sequence_, what_, io);
      return workers_.status;
    }
    absl::Status Finish() override { return workers_.status; }

   private:
    FakeWorkers& workers_;
    const StepSequence sequence_;
    const StepReturn what_;
  };
  absl::StatusOr<std::unique_ptr<Step>> Begin(
      std::vector<StepSequence> sequences, StepDtype /*dtype*/, StepReturn what,
      std::vector<LayerId> layers, const StepOptions& /*options*/) override {
    EXPECT_EQ(layers, model_.layers);
    return std::make_unique<FakeStep>(this, std::move(sequences[0]), what);
  }

  Stats stats() const override { return {}; }

  absl::Status status;
  std::function<void(absl::Span<const StepLayerIo>)> spoil;

 private:
  void RunLayer(const StepSequence& sequence, StepReturn what,
                const StepLayerIo& io) const {
    const size_t tokens = sequence.token_ids.size();
    EXPECT_EQ(io.streams.size(),
              tokens * StreamBytes(model_, StepDtype::kBf16));
    if (what == StepReturn::kStreams) {
      EXPECT_EQ(io.streams_out.size(), io.streams.size());
      for (size_t i = 0; i < io.streams.size(); ++i) {
        io.streams_out[i] = std::byte{Mixed(sequence, io.streams[i], i)};
      }
      return;
    }
    EXPECT_EQ(io.gate.size(), tokens * model_.config.hc_mult);
    EXPECT_EQ(io.value.size(), tokens * model_.config.dim);
    for (size_t i = 0; i < io.gate.size(); ++i) {
      io.gate[i] = Mixed(sequence, io.streams[i], i);
    }
    for (size_t i = 0; i < io.value.size(); ++i) {
      io.value[i] = Mixed(sequence, io.streams[i], i);
    }
  }

  ModelInfo model_;
};

StepLoad::Options SmallLoad(StepMode mode = StepMode::kApply) {
  return {.sizes = {{1, 1}, {5, 1}},
          .mode = mode,
          .inputs = 3,
          .slots = 2,
          .max_memory_bytes = 100'000'000};
}

class StepLoadTest : public testing::Test {
 protected:
  std::unique_ptr<StepLoad> Make(const StepLoad::Options& options) {
    auto load = StepLoad::Create(options, &workers_).value();
    EXPECT_EQ(load->Learn(absl::Seconds(10)).value(), std::nullopt);
    return load;
  }
  LoadAnswer Run(StepLoad& load, size_t size_index, uint64_t seed) {
    load.Prepare(1, {.size_index = size_index, .seed = seed});
    Notification ended;
    absl::Status told;
    load.Start(1, absl::Now() + absl::Minutes(1),
               [&](const absl::Status& status) {
                 told = status;
                 ended.Notify();
               });
    ended.Wait();
    EXPECT_EQ(told, workers_.status);
    return load.Finish(1, told);
  }

  FakeWorkers workers_;
};

TEST_F(StepLoadTest, SameAnswersPass) {
  for (const StepMode mode : {StepMode::kApply, StepMode::kForward}) {
    for (const StepReturn what :
         {StepReturn::kStreams, StepReturn::kContribution}) {
      StepLoad::Options options = SmallLoad(mode);
      options.what = what;
      const auto load = Make(options);
      for (uint64_t seed = 0; seed < 20; ++seed) {
        const LoadAnswer answer = Run(*load, seed % 2, seed);
        EXPECT_EQ(answer.units, seed % 2 == 0 ? 1 : 5);
        EXPECT_EQ(answer.units_checked, answer.units);
        EXPECT_FALSE(answer.mismatch.has_value());
      }
    }
  }
}

TEST_F(StepLoadTest, AFlippedBitIsFound) {
  const auto load = Make(SmallLoad());
  const size_t token_bytes = StreamBytes(workers_.model(), StepDtype::kBf16);
  workers_.spoil = [&](absl::Span<const StepLayerIo> layers) {
    layers[1].streams_out[3 * token_bytes + 7] ^= std::byte{0x80};
  };
  const LoadAnswer answer = Run(*load, 1, 4);
  ASSERT_TRUE(answer.mismatch.has_value());
  EXPECT_EQ(answer.mismatch->layer, workers_.model().layers[1]);
  EXPECT_EQ(answer.mismatch->slot, 3);
  EXPECT_EQ(answer.mismatch->byte, 7);
  EXPECT_EQ(answer.mismatch->wanted ^ answer.mismatch->got, 0x80);
  EXPECT_EQ(answer.mismatch->wrong, 1);
  EXPECT_THAT(answer.mismatch->text,
              AllOf(HasSubstr("token 3 of 5"), HasSubstr("its streams")));
}

TEST_F(StepLoadTest, ABitOfGateOrValueIsFound) {
  StepLoad::Options options = SmallLoad();
  options.what = StepReturn::kContribution;
  const auto load = Make(options);
  const auto spoil_gate = [](absl::Span<const StepLayerIo> layers) {
    uint32_t bits;
    std::memcpy(&bits, &layers[0].gate[0], sizeof(bits));
    bits ^= 1;
    std::memcpy(&layers[0].gate[0], &bits, sizeof(bits));
  };
  workers_.spoil = spoil_gate;
  EXPECT_THAT(Run(*load, 1, 4).mismatch->text, HasSubstr("its gate"));
  workers_.spoil = [](absl::Span<const StepLayerIo> layers) {
    layers[1].value.back() ^= 1;
  };
  const LoadAnswer answer = Run(*load, 1, 4);
  EXPECT_THAT(answer.mismatch->text, HasSubstr("its value"));
  EXPECT_EQ(answer.mismatch->slot, 4);
}

TEST_F(StepLoadTest, TwoFirstAnswersThatDifferAreTold) {
  const auto load = StepLoad::Create(SmallLoad(), &workers_).value();
  int calls = 0;
  workers_.spoil = [&](absl::Span<const StepLayerIo> layers) {
    if (++calls == 4) layers[0].streams_out[0] ^= std::byte{1};
  };
  const auto mismatch = load->Learn(absl::Seconds(10));
  ASSERT_THAT(mismatch, IsOk());
  ASSERT_TRUE(mismatch->has_value());
  EXPECT_EQ((*mismatch)->item, 1);  // the second input
}

TEST_F(StepLoadTest, ErrorsAreTold) {
  const auto load = Make(SmallLoad());
  workers_.status = absl::UnavailableError("gone");
  EXPECT_EQ(Run(*load, 0, 1).units, 0);
  EXPECT_THAT(load->Learn(absl::Seconds(10)),
              IsError(StatusCode::kUnavailable,
                      AllOf(HasSubstr("the first step of 1 tokens"),
                            HasSubstr("gone"))));
}

TEST_F(StepLoadTest, InputsAreWhatTheContractAsksFor) {
  const ModelInfo& model = workers_.model();
  const StepInput first = DrawStepInput(model, 2, 0, 5, 1);
  EXPECT_EQ(first.sequence.start_position, 0);
  EXPECT_THAT(first.sequence.lookback, SizeIs(0));
  const StepInput later = DrawStepInput(model, 2, 1, 5, 1);
  EXPECT_GE(later.sequence.start_position, model.config.max_lookback());
  EXPECT_THAT(later.sequence.lookback, SizeIs(model.config.max_lookback()));
  EXPECT_THAT(later.sequence.token_ids,
              AllOf(SizeIs(5), Each(Lt(model.config.vocab_size))));
  EXPECT_THAT(later.streams, SizeIs(2));
  for (size_t at = 1; at < later.streams[0].size(); at += 2) {
    // The exponent of bf16 0x3C80 .. 0x407F: 2^-6 .. below 4.
    const auto high = static_cast<uint8_t>(later.streams[0][at]) & 0x7F;
    ASSERT_GE(high, 0x3C);
    ASSERT_LE(high, 0x40);
  }
  EXPECT_EQ(DrawStepInput(model, 2, 1, 5, 1).streams, later.streams);
  EXPECT_NE(DrawStepInput(model, 2, 1, 5, 2).streams, later.streams);
}

TEST_F(StepLoadTest, LimitsAreNamed) {
  const auto error = [&](const StepLoad::Options& options, StatusCode code,
                         auto matcher) {
    EXPECT_THAT(StepLoad::Create(options, &workers_).status(),
                IsError(code, matcher));
  };
  StepLoad::Options options = SmallLoad();
  options.sizes = {{65, 1}};
  error(options, StatusCode::kInvalidArgument,
        AllOf(HasSubstr("65 tokens"), HasSubstr("take 64")));
  options = SmallLoad();
  options.layers = {LayerId{77}};
  error(options, StatusCode::kNotFound, HasSubstr("no layer 77"));
  options = SmallLoad();
  options.max_memory_bytes = 1000;
  error(options, StatusCode::kResourceExhausted,
        AllOf(HasSubstr("18 tokens of inputs"),
              HasSubstr("10 tokens in flight"), HasSubstr("--max-memory-mb")));
}

}  // namespace
}  // namespace engram::ctl
