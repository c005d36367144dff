#include "compute/block/local_row_source.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/model/checkpoint.h"
#include "core/model/manifest.h"
#include "gtest/gtest.h"

namespace engram {
namespace {

const char kData[] = ENGRAM_SOURCE_DIR "/tests/golden/data";

std::shared_ptr<const Checkpoint> Open(const std::string& dir) {
  auto checkpoint = Checkpoint::Open(dir);
  EXPECT_EQ(checkpoint.status(), absl::OkStatus());
  return std::make_shared<const Checkpoint>(*std::move(checkpoint));
}

class LocalRowSourceTest : public testing::Test {
 protected:
  LocalRowSourceTest()
      : checkpoint_(Open(absl::StrCat(kData, "/odd"))),
        source_(*LocalRowSource::Create(checkpoint_)) {}

  absl::Status Fetch(LayerId layer, const std::vector<RowId>& ids,
                     std::vector<std::byte>* out,
                     absl::Time deadline = absl::InfiniteFuture()) {
    out->assign(ids.size() * source_->row_format().row_bytes(),
                std::byte{0xA5});
    int calls = 0;
    absl::Status status;
    const auto fetch = source_->Fetch(layer, ids, absl::MakeSpan(*out),
                                      deadline, [&](absl::Status result) {
                                        ++calls;
                                        status = std::move(result);
                                      });
    EXPECT_EQ(calls, 1);
    fetch->Cancel();
    return status;
  }

  const std::shared_ptr<const Checkpoint> checkpoint_;
  const std::unique_ptr<LocalRowSource> source_;
};

TEST_F(LocalRowSourceTest, GivesRowsInTheOrderAsked) {
  const size_t bytes = source_->row_format().row_bytes();
  const std::vector<RowId> ids = {7, 0, 2000, 7};
  for (size_t layer = 0; layer < 3; ++layer) {
    std::vector<std::byte> rows;
    ASSERT_EQ(Fetch(checkpoint_->layout().layers()[layer].layer_id, ids, &rows),
              absl::OkStatus());
    for (size_t i = 0; i < ids.size(); ++i) {
      std::vector<std::byte> wanted(bytes);
      ASSERT_EQ(checkpoint_->PackRows(layer, ids[i], absl::MakeSpan(wanted)),
                absl::OkStatus());
      EXPECT_TRUE(
          std::equal(wanted.begin(), wanted.end(), rows.begin() + i * bytes))
          << layer << " " << i;
    }
  }
}

TEST_F(LocalRowSourceTest, NothingToFetch) {
  std::vector<std::byte> rows;
  EXPECT_EQ(Fetch(LayerId{3}, {}, &rows), absl::OkStatus());
}

TEST_F(LocalRowSourceTest, SaysWhatIsWrong) {
  std::vector<std::byte> rows;
  EXPECT_EQ(Fetch(LayerId{1}, {0}, &rows).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Fetch(LayerId{3}, {0, 0xFFFFFFFF}, &rows).code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(
      Fetch(LayerId{3}, {0}, &rows, absl::Now() - absl::Seconds(1)).code(),
      absl::StatusCode::kDeadlineExceeded);
}

TEST_F(LocalRowSourceTest, VersionIsTheManifests) {
  EXPECT_EQ(source_->version(), "");
  const std::string dir = absl::StrCat(testing::TempDir(), "/local_rows");
  std::filesystem::remove_all(dir);
  std::filesystem::copy(absl::StrCat(kData, "/odd"), dir);
  const auto manifest =
      BuildManifest(*checkpoint_, {}, [](uint64_t, uint64_t) {});
  ASSERT_EQ(manifest.status(), absl::OkStatus());
  const std::string path = absl::StrCat(dir, "/", kManifestFileName);
  ASSERT_EQ(manifest->Save(path), absl::OkStatus());
  const auto source = LocalRowSource::Create(Open(dir));
  ASSERT_EQ(source.status(), absl::OkStatus());
  EXPECT_EQ((*source)->version(), manifest->version());

  std::ofstream(path, std::ios::trunc) << "{";
  EXPECT_EQ(LocalRowSource::Create(Open(dir)).status().code(),
            absl::StatusCode::kInvalidArgument);
  std::filesystem::remove_all(dir);
}

TEST_F(LocalRowSourceTest, RefusesTheManifestOfAnotherCheckpoint) {
  const std::string dir = absl::StrCat(testing::TempDir(), "/other_rows");
  std::filesystem::remove_all(dir);
  std::filesystem::copy(absl::StrCat(kData, "/tiny"), dir);
  const auto manifest =
      BuildManifest(*checkpoint_, {}, [](uint64_t, uint64_t) {});
  ASSERT_EQ(manifest.status(), absl::OkStatus());
  ASSERT_EQ(manifest->Save(absl::StrCat(dir, "/", kManifestFileName)),
            absl::OkStatus());
  EXPECT_EQ(LocalRowSource::Create(Open(dir)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace engram
