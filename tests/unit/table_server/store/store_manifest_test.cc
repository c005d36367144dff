#include "table_server/store/store_manifest.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/base/atomic_file.h"
#include "table_server/store/store_dir.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/table_server/store/store_rows.h"

namespace engram::test {
namespace {

void WriteAll(const std::string& path, const std::string& text) {
  ASSERT_THAT(WriteFileAtomically(path, text), IsOk());
}

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StoreManifestTest : public ::testing::Test {
 protected:
  std::string DirOf(const Manifest& manifest) const {
    return absl::StrCat(folder_, "/", VersionDirName(manifest.version()));
  }

  const TempDir dir_;
  const std::string folder_ = dir_.File("kept");
  const Manifest& one_ = SmallManifest();
  const Manifest two_ = MakeWideManifest(32);
};

TEST_F(StoreManifestTest, FindsAVersionByItsFirstDigits) {
  ASSERT_THAT(KeepManifest(folder_, one_), IsOk());
  ASSERT_THAT(KeepManifest(folder_, one_), IsOk());
  ASSERT_THAT(KeepManifest(folder_, two_), IsOk());
  for (const Manifest* manifest : {&one_, &two_}) {
    for (const size_t digits : {4u, 16u, 17u, 64u}) {
      const auto kept =
          LoadKeptManifest(folder_, manifest->version().substr(0, digits));
      ASSERT_THAT(kept, IsOk()) << digits;
      EXPECT_EQ(kept->json(), manifest->json());
    }
  }
  std::string beyond = one_.version();  // as far as the directory's name
  beyond.back() = beyond.back() == '0' ? '1' : '0';
  EXPECT_THAT(LoadKeptManifest(folder_, beyond),
              IsError(absl::StatusCode::kNotFound, HasSubstr(one_.version())));
}

TEST_F(StoreManifestTest, NamesThoseThatAreThere) {
  EXPECT_THAT(LoadKeptManifest(folder_, ""),
              IsError(absl::StatusCode::kNotFound, HasSubstr(folder_)));
  ASSERT_THAT(KeepManifest(folder_, one_), IsOk());
  EXPECT_THAT(LoadKeptManifest(folder_, ""), IsOk());
  ASSERT_THAT(KeepManifest(folder_, two_), IsOk());
  const auto both = AllOf(HasSubstr(VersionDirName(one_.version())),
                          HasSubstr(VersionDirName(two_.version())));
  EXPECT_THAT(LoadKeptManifest(folder_, ""),
              IsError(absl::StatusCode::kInvalidArgument, both));
  EXPECT_THAT(LoadKeptManifest(folder_, "not hex"),
              IsError(absl::StatusCode::kNotFound, both));
}

TEST_F(StoreManifestTest, TheOneThatAServerHadLast) {
  EXPECT_THAT(LoadServedManifest(folder_),
              IsError(absl::StatusCode::kNotFound, HasSubstr(folder_)));
  ASSERT_THAT(KeepManifest(folder_, one_), IsOk());
  EXPECT_EQ(LoadServedManifest(folder_)->version(), one_.version());
  ASSERT_THAT(KeepManifest(folder_, two_), IsOk());
  EXPECT_THAT(LoadServedManifest(folder_),
              IsError(absl::StatusCode::kInvalidArgument,
                      HasSubstr(VersionDirName(one_.version()))));
  for (const Manifest* manifest : {&one_, &two_, &one_}) {
    ASSERT_THAT(NoteServedVersion(folder_, manifest->version()), IsOk());
    EXPECT_EQ(LoadServedManifest(folder_)->version(), manifest->version());
  }
  // What it served is gone: another one would be a guess.
  ASSERT_THAT(RemoveOtherManifests(folder_, two_.version()), IsOk());
  EXPECT_THAT(LoadServedManifest(folder_),
              IsError(absl::StatusCode::kNotFound, HasSubstr(one_.version())));
}

TEST_F(StoreManifestTest, DamagedOneIsNamed) {
  ASSERT_THAT(KeepManifest(folder_, one_), IsOk());
  const std::string path = absl::StrCat(DirOf(one_), "/", kManifestFileName);
  for (const std::string& text : {one_.json().substr(9), two_.json()}) {
    WriteAll(path, text);
    EXPECT_THAT(LoadKeptManifest(folder_, ""),
                IsError(absl::StatusCode::kDataLoss, HasSubstr(path)));
  }
}

TEST_F(StoreManifestTest, WhatWasHalfWrittenIsNoManifestAndGoes) {
  std::filesystem::create_directories(DirOf(one_));
  const std::string half =
      absl::StrCat(DirOf(one_), "/", kManifestFileName, ".tmp.12.3");
  WriteAll(half, "{");
  EXPECT_THAT(KeptVersions(folder_).value(), ElementsAre());
  ASSERT_THAT(KeepManifest(folder_, one_), IsOk());
  EXPECT_FALSE(std::filesystem::exists(half));
}

TEST_F(StoreManifestTest, IsNoStrangerInAVersionThatIsRemoved) {
  ASSERT_THAT(KeepManifest(folder_, one_), IsOk());
  WriteAll(absl::StrCat(DirOf(one_), "/", kManifestFileName, ".tmp.12.3"), "{");
  WriteAll(absl::StrCat(DirOf(one_), "/LOCK"), "");
  EXPECT_THAT(OtherVersions(folder_, two_.version()).value().at(0).bytes, 0u);
  EXPECT_THAT(RemoveVersion(folder_, VersionDirName(one_.version())), IsOk());
  EXPECT_FALSE(std::filesystem::exists(DirOf(one_)));
}

TEST_F(StoreManifestTest, RemovesOthersAndNoMore) {
  ASSERT_THAT(KeepManifest(folder_, one_), IsOk());
  ASSERT_THAT(KeepManifest(folder_, two_), IsOk());
  WriteAll(absl::StrCat(DirOf(two_), "/notes"), "mine");
  ASSERT_THAT(RemoveOtherManifests(folder_, one_.version()), IsOk());
  EXPECT_THAT(KeptVersions(folder_).value(),
              ElementsAre(VersionDirName(one_.version())));
  EXPECT_EQ(ReadAll(absl::StrCat(DirOf(two_), "/notes")), "mine");
}

}  // namespace
}  // namespace engram::test
