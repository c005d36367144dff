#include "table_server/loading/host_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "absl/strings/match.h"
#include "table_server/loading/checkpoint_source.h"
#include "table_server/loading/table_source.h"
#include "tests/testing/checkpoint_maker.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using ::engram::test::CheckpointMaker;
using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::engram::test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A checkpoint on disk, opened, and all that a load needs.
class HostStoreTest : public ::testing::Test {
 protected:
  HostStoreTest() : maker_("tiny") {}

  void WriteManifest(bool allow_nan = false) {
    maker_.Write(dir_.path());
    ASSERT_THAT(test::WriteManifest(
                    dir_.path(), {.allow_nan = allow_nan, .thread_count = 1}),
                IsOk());
  }

  void Open() {
    auto source = OpenCheckpointSource(dir_.path());
    ASSERT_THAT(source, IsOk());
    source_.emplace(*std::move(source));
    auto tier = HostTier::Create(source_->manifest);
    ASSERT_THAT(tier, IsOk());
    tier_ = *std::move(tier);
    files_.emplace(*source_->checkpoint, source_->manifest);
    MakeStore({&*files_});
  }

  void MakeStore(std::vector<PartitionSource*> sources,
                 uint64_t memory_limit_bytes = 0) {
    store_.emplace(
        source_->manifest, *tier_,
        HostStore::Options{.sources = std::move(sources),
                           .memory_limit_bytes = memory_limit_bytes});
  }

  absl::Status Load(const PartitionRef& ref) {
    loaded_bytes_ = 0;
    return store_->Load(ref, [&](size_t bytes) {
      loaded_bytes_ += bytes;
      return absl::OkStatus();
    });
  }

  // Changes one byte of a tensor's rows on disk, behind the manifest's back.
  void FlipCodeOfRow(LayerId layer, uint64_t row) {
    auto& tensor = maker_.Tensor(
        absl::StrCat("layers.", ToInt(layer), ".engram.embed.weight"));
    tensor.bytes[row * maker_.config().head_dim] ^= std::byte{1};
    maker_.Write(dir_.path());
  }

  const TempDir dir_;
  CheckpointMaker maker_;
  std::optional<TableSource> source_;
  std::unique_ptr<HostTier> tier_;
  std::optional<CheckpointSource> files_;
  std::optional<HostStore> store_;
  uint64_t loaded_bytes_ = 0;
};

// Gives a partition that `change` was done to.
class ChangedSource final : public PartitionSource {
 public:
  using Change = std::function<absl::Status(absl::Span<std::byte>)>;

  ChangedSource(PartitionSource& source, Change change)
      : source_(source), change_(std::move(change)) {}

  std::string description() const override { return "the changed one"; }
  absl::Status Read(
      const PartitionRef& ref, absl::Span<std::byte> out,
      absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) override {
    ++reads;
    const absl::Status status = source_.Read(ref, out, on_bytes);
    return status.ok() ? change_(out) : status;
  }

  int reads = 0;

 private:
  PartitionSource& source_;
  const Change change_;
};

constexpr PartitionRef kFirst{LayerId{1}, PartitionId{0}};

TEST_F(HostStoreTest, LoadsWhatTheCheckpointHas) {
  WriteManifest();
  Open();
  const Manifest& manifest = source_->manifest;
  const size_t row_bytes = tier_->row_bytes();
  uint64_t total = 0;
  for (const uint32_t p : {0U, 3U, manifest.partition_count(1) - 1}) {
    const PartitionRef ref{manifest.layers()[1].layer_id, PartitionId{p}};
    ASSERT_THAT(Load(ref), IsOk());
    EXPECT_EQ(loaded_bytes_, store_->BytesToLoad(ref));
    total += loaded_bytes_;
    // Against the checkpoint's own way to give scattered rows.
    const auto first = static_cast<RowId>(p * manifest.partition_rows());
    const std::vector<RowId> ids = {first + 1, first};
    std::vector<std::byte> loaded(ids.size() * row_bytes);
    std::vector<std::byte> wanted(loaded.size());
    std::vector<uint32_t> misses;
    ASSERT_THAT(tier_->CopyRows(1, ids, absl::MakeSpan(loaded), misses),
                IsOk());
    ASSERT_TRUE(misses.empty());
    ASSERT_THAT(source_->checkpoint->GatherRows(1, ids, absl::MakeSpan(wanted)),
                IsOk());
    EXPECT_EQ(loaded, wanted);
  }
  EXPECT_LT(store_->BytesToLoad({manifest.layers()[1].layer_id,
                                 PartitionId{manifest.partition_count(1) - 1}}),
            store_->BytesToLoad(kFirst));
  EXPECT_GE(store_->memory_bytes(), total);
  for (const RowDefects& defects : store_->defects()) {
    EXPECT_FALSE(defects.any());
  }
}

TEST_F(HostStoreTest, WhatIsFreedCanBeLoadedAgain) {
  WriteManifest();
  Open();
  ASSERT_THAT(Load(kFirst), IsOk());
  store_->Free(kFirst);
  EXPECT_EQ(store_->memory_bytes(), 0U);
  EXPECT_THAT(Load(kFirst), IsOk());
}

TEST_F(HostStoreTest, ADamagedPartitionIsNamedAndNothingIsLeftOfIt) {
  WriteManifest();
  FlipCodeOfRow(LayerId{14}, 0);
  Open();
  EXPECT_THAT(
      Load({LayerId{14}, PartitionId{0}}),
      IsError(absl::StatusCode::kFailedPrecondition,
              AllOf(HasSubstr("manifest of another checkpoint or damaged file"),
                    HasSubstr("layer 14 partition 0"), HasSubstr(dir_.path()),
                    HasSubstr("digest"))));
  EXPECT_EQ(store_->memory_bytes(), 0U);
}

TEST_F(HostStoreTest, DamageElsewhereIsNoneOfItsBusiness) {
  WriteManifest();
  Open();
  FlipCodeOfRow(LayerId{1}, source_->manifest.partition_rows());
  Open();
  EXPECT_THAT(Load(kFirst), IsOk());
  EXPECT_FALSE(Load({LayerId{1}, PartitionId{1}}).ok());
}

TEST_F(HostStoreTest, TheNextSourceIsAskedForWhatOneGivesWrong) {
  WriteManifest();
  Open();
  ChangedSource liar(*files_, [](absl::Span<std::byte> rows) {
    rows.back() ^= std::byte{1};
    return absl::OkStatus();
  });
  ChangedSource absent(*files_, [](absl::Span<std::byte>) {
    return absl::NotFoundError("not here");
  });
  MakeStore({&liar, &absent, &*files_});
  EXPECT_THAT(Load(kFirst), IsOk());
  EXPECT_EQ(liar.reads, 1);
  EXPECT_EQ(absent.reads, 1);
  // What is wrong says more than what is absent.
  MakeStore({&liar, &absent});
  EXPECT_THAT(Load({LayerId{1}, PartitionId{1}}),
              IsError(absl::StatusCode::kFailedPrecondition,
                      HasSubstr("the changed one")));
  MakeStore({&absent});
  EXPECT_THAT(Load({LayerId{1}, PartitionId{1}}),
              IsError(absl::StatusCode::kNotFound, HasSubstr("not here")));
}

TEST_F(HostStoreTest, ACancelledLoadAsksNobodyElse) {
  WriteManifest();
  Open();
  ChangedSource other(*files_, [](auto) { return absl::OkStatus(); });
  MakeStore({&*files_, &other});
  EXPECT_THAT(
      store_->Load(kFirst,
                   [](size_t) { return absl::CancelledError("stopped"); }),
      IsError(absl::StatusCode::kCancelled, HasSubstr("stopped")));
  EXPECT_EQ(other.reads, 0);
  EXPECT_EQ(store_->memory_bytes(), 0U);
}

TEST_F(HostStoreTest, MemoryIsCheckedWithTheSums) {
  WriteManifest();
  Open();
  std::vector<PartitionRef> all;
  for (size_t i = 0; i < source_->manifest.layers().size(); ++i) {
    for (uint32_t p = 0; p < source_->manifest.partition_count(i); ++p) {
      all.push_back({source_->manifest.layers()[i].layer_id, PartitionId{p}});
    }
  }
  EXPECT_THAT(store_->CheckFits(all), IsOk());
  MakeStore({&*files_}, 1 << 20);
  EXPECT_THAT(store_->CheckFits(all),
              IsError(absl::StatusCode::kResourceExhausted,
                      AllOf(HasSubstr("layer 1"), HasSubstr("layer 14"),
                            HasSubstr("1048576 bytes"))));
  EXPECT_THAT(Load(kFirst), IsError(absl::StatusCode::kResourceExhausted,
                                    HasSubstr("too little memory")));
}

TEST_F(HostStoreTest, NanCodesThatTheManifestAllowsAreCounted) {
  maker_.Tensor("layers.1.engram.embed.weight").bytes[5] = std::byte{0x7F};
  maker_.Tensor("layers.14.engram.embed.scale").bytes[0] = std::byte{0xFF};
  WriteManifest(/*allow_nan=*/true);
  Open();
  ASSERT_THAT(Load(kFirst), IsOk());
  ASSERT_THAT(Load({LayerId{14}, PartitionId{0}}), IsOk());
  const std::vector<RowDefects> defects = store_->defects();
  ASSERT_EQ(defects.size(), 2U);
  EXPECT_EQ(defects[0].nan_codes, 1U);
  EXPECT_EQ(defects[0].nan_scales, 0U);
  EXPECT_EQ(defects[1].nan_codes, 0U);
  EXPECT_EQ(defects[1].nan_scales, 1U);
}

TEST_F(HostStoreTest, AFileCutWhileItIsMappedIsAnError) {
  WriteManifest();
  Open();
  for (const std::string& name : dir_.List()) {
    if (absl::EndsWith(name, ".safetensors")) {
      std::filesystem::resize_file(dir_.File(name), 0);
    }
  }
  EXPECT_THAT(Load(kFirst),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("partition 0")));
}

}  // namespace
}  // namespace engram
