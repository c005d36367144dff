#include "engram_client/ctl/load_gathers.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/model/synthetic_rows.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace engram::ctl {
namespace {

using absl::StatusCode;
using test::IsError;
using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kSeed = 3;

TableInfo Table() {
  TableInfo table = {.version = "v"};
  table.row_format = RowFormat::Create("F8_E4M3", "F8_E8M0", 32, 32).value();
  table.layers = {{LayerId{1}, 1000, 0}, {LayerId{14}, 3000, 0}};
  return table;
}

class SyntheticRows final : public RowReference {
 public:
  const std::string& version() const override { return version_; }
  absl::Status Read(LayerId layer, absl::Span<const RowId> row_ids,
                    absl::Span<std::byte> out) const override {
    const RowFormat format = Table().row_format;
    for (size_t i = 0; i < row_ids.size(); ++i) {
      SyntheticRow(kSeed, layer, row_ids[i], format,
                   out.subspan(i * format.row_bytes(), format.row_bytes()));
    }
    return absl::OkStatus();
  }

 private:
  const std::string version_ = "v";
};

class EndedGather final : public GatherHandle {
 public:
  absl::Status Wait() override { return absl::OkStatus(); }
  bool done() const override { return true; }
  void Cancel() override {}
  GatherStats stats() const override {
    return {.bytes_received = 123, .calls = 2};
  }
};

// Answers with the right rows, then lets the test spoil them.
class FakeClient final : public TableClient {
 public:
  const TableInfo& table() const override { return table_; }
  std::unique_ptr<GatherHandle> Prefetch(
      std::vector<LayerGather> layers, absl::Time /*deadline*/,
      absl::AnyInvocable<void(const absl::Status&)> done) override {
    for (const LayerGather& layer : layers) {
      EXPECT_EQ(layer.out.size(),
                layer.row_ids.size() * table_.row_format.row_bytes());
      EXPECT_TRUE(std::all_of(
          layer.out.begin(), layer.out.end(),
          [this](std::byte b) { return !poisoned || b == kPoison; }));
      EXPECT_TRUE(rows_.Read(layer.layer, layer.row_ids, layer.out).ok());
    }
    if (spoil) spoil(layers);
    asked = std::move(layers);
    done(status);
    return std::make_unique<EndedGather>();
  }
  absl::Status WaitUntilComplete(absl::Time) override {
    return absl::OkStatus();
  }
  absl::Status CheckComplete() const override { return absl::OkStatus(); }
  std::vector<ServerState> servers() const override { return {}; }
  Stats stats() const override { return {.first_calls = 5, .hedges = 2}; }

  bool poisoned = true;
  absl::Status status;
  std::function<void(std::vector<LayerGather>&)> spoil;
  std::vector<LayerGather> asked;

 private:
  const TableInfo table_ = Table();
  SyntheticRows rows_;
};

GatherLoad::Options SmallLoad() {
  return {
      .sizes = {{24, 1}, {100, 1}}, .slots = 3, .max_memory_bytes = 1'000'000};
}

class GatherLoadTest : public testing::Test {
 protected:
  std::unique_ptr<GatherLoad> Make(const GatherLoad::Options& options) {
    return GatherLoad::Create(options, &client_,
                              std::make_unique<SyntheticRows>())
        .value();
  }
  // One call from its schedule to its end.
  LoadAnswer Run(GatherLoad& load, size_t size_index, uint64_t seed,
                 size_t slot = 1) {
    load.Prepare(slot, {.size_index = size_index, .seed = seed});
    bool ended = false;
    load.Start(slot, absl::InfiniteFuture(), [&](const absl::Status& status) {
      EXPECT_EQ(status, client_.status);
      ended = true;
    });
    EXPECT_TRUE(ended);
    return load.Finish(slot, client_.status);
  }

  FakeClient client_;
};

TEST_F(GatherLoadTest, AsksForAsManyRowsOfEachLayer) {
  const auto load = Make(SmallLoad());
  const LoadAnswer answer = Run(*load, 1, 7);
  ASSERT_EQ(client_.asked.size(), 2);
  EXPECT_EQ(client_.asked[0].layer, LayerId{1});
  EXPECT_EQ(client_.asked[1].layer, LayerId{14});
  for (const LayerGather& layer : client_.asked) {
    EXPECT_EQ(layer.row_ids.size(), 100);
  }
  EXPECT_LT(*std::max_element(client_.asked[0].row_ids.begin(),
                              client_.asked[0].row_ids.end()),
            1000);
  EXPECT_EQ(answer.units, 200);
  EXPECT_EQ(answer.units_checked, 200);
  EXPECT_EQ(answer.bytes, 200 * 33);
  EXPECT_EQ(answer.server_calls, 2);
  EXPECT_EQ(answer.wire_bytes, 123);
  EXPECT_FALSE(answer.mismatch.has_value());
}

TEST_F(GatherLoadTest, TheSeedOfACallDecidesItsIds) {
  const auto load = Make(SmallLoad());
  const auto ids = [&](uint64_t seed, size_t slot) {
    Run(*load, 0, seed, slot);
    const auto span = client_.asked[1].row_ids;
    return std::vector<RowId>(span.begin(), span.end());
  };
  EXPECT_EQ(ids(5, 0), ids(5, 2));
  EXPECT_NE(ids(5, 0), ids(6, 0));
}

TEST_F(GatherLoadTest, LayersMayBeChosen) {
  GatherLoad::Options options = SmallLoad();
  options.layers = {LayerId{14}};
  const auto load = Make(options);
  EXPECT_EQ(Run(*load, 0, 1).units, 24);
  ASSERT_EQ(client_.asked.size(), 1);
  EXPECT_EQ(client_.asked[0].layer, LayerId{14});
}

TEST_F(GatherLoadTest, AFlippedBitIsFoundInEitherLayer) {
  const auto load = Make(SmallLoad());
  for (const size_t layer : {0, 1}) {
    client_.spoil = [&](std::vector<LayerGather>& layers) {
      layers[layer].out[5 * 33 + 4] ^= std::byte{0x10};
      layers[layer].out[9 * 33] ^= std::byte{0x01};
    };
    const LoadAnswer answer = Run(*load, 0, 11);
    ASSERT_TRUE(answer.mismatch.has_value());
    EXPECT_EQ(answer.mismatch->layer, client_.asked[layer].layer);
    EXPECT_EQ(answer.mismatch->slot, 5);
    EXPECT_EQ(answer.mismatch->item, client_.asked[layer].row_ids[5]);
    EXPECT_EQ(answer.mismatch->byte, 4);
    EXPECT_EQ(answer.mismatch->wanted ^ answer.mismatch->got, 0x10);
    EXPECT_EQ(answer.mismatch->wrong, 2);
  }
}

// The rows of every call are looked at by FakeClient.
TEST_F(GatherLoadTest, PoisonIsThereForEveryCall) {
  const auto load = Make(SmallLoad());
  for (const size_t size_index : {1, 0, 1}) {
    Run(*load, size_index, 1);
    client_.status = absl::UnavailableError("after it had written");
    Run(*load, size_index, 2);
    client_.status = absl::OkStatus();
  }
}

TEST_F(GatherLoadTest, RowsOfTheCallBeforeDoNotPass) {
  const auto load = Make(SmallLoad());
  Run(*load, 1, 1);
  client_.spoil = [](std::vector<LayerGather>& layers) {
    std::fill(layers[1].out.begin() + 33, layers[1].out.begin() + 66, kPoison);
  };
  const LoadAnswer answer = Run(*load, 1, 1);
  ASSERT_TRUE(answer.mismatch.has_value());
  EXPECT_THAT(answer.mismatch->text, HasSubstr("nothing was written"));
}

// Different rows each time, so that in the end all are looked at.
TEST_F(GatherLoadTest, SamplesWander) {
  GatherLoad::Options options = SmallLoad();
  options.sample_step = 10;
  const auto load = Make(options);
  client_.poisoned = false;
  size_t found = 0;
  client_.spoil = [](std::vector<LayerGather>& layers) {
    layers[0].out[0] ^= std::byte{1};
  };
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const LoadAnswer answer = Run(*load, 1, seed);
    EXPECT_EQ(answer.units, 200);
    EXPECT_EQ(answer.units_checked, 20);
    if (answer.mismatch.has_value()) ++found;
  }
  EXPECT_NEAR(static_cast<double>(found), 20, 15);
}

TEST_F(GatherLoadTest, WhatFailedIsNotCompared) {
  const auto load = Make(SmallLoad());
  client_.status = absl::UnavailableError("gone");
  client_.spoil = [](std::vector<LayerGather>& layers) {
    layers[0].out[0] ^= std::byte{1};
  };
  const LoadAnswer answer = Run(*load, 0, 1);
  EXPECT_EQ(answer.units, 0);
  EXPECT_FALSE(answer.mismatch.has_value());
  EXPECT_EQ(answer.server_calls, 2);
}

TEST_F(GatherLoadTest, TellsWhatTheClientCounts) {
  EXPECT_THAT(Make(SmallLoad())->client_counts(),
              AllOf(testing::Contains(testing::Pair("first_calls", 5)),
                    testing::Contains(testing::Pair("hedges", 2)),
                    testing::Contains(testing::Pair("ejections", 0))));
}

TEST_F(GatherLoadTest, LimitsAreNamed) {
  const auto error = [&](const GatherLoad::Options& options, StatusCode code,
                         auto matcher) {
    EXPECT_THAT(GatherLoad::Create(options, &client_, nullptr).status(),
                IsError(code, matcher));
  };
  GatherLoad::Options options = SmallLoad();
  options.layers = {LayerId{2}};
  error(options, StatusCode::kNotFound,
        AllOf(HasSubstr("no layer 2"), HasSubstr("1, 14")));
  options.layers = {LayerId{14}, LayerId{14}};
  error(options, StatusCode::kInvalidArgument, HasSubstr("layer 14 twice"));
  options = SmallLoad();
  options.max_memory_bytes = 3 * 200 * 37 - 1;
  error(options, StatusCode::kResourceExhausted,
        AllOf(HasSubstr("3 calls of up to 200 rows"),
              HasSubstr("--max-memory-mb")));
  options = SmallLoad();
  options.sizes = {{uint64_t{1} << 24, 1}};
  error(options, StatusCode::kInvalidArgument, HasSubstr("33554432 rows"));
}

}  // namespace
}  // namespace engram::ctl
