// What is in a store's directory beside its table version.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/unit/table_server/store/flat_store_fixture.h"

namespace engram::test {
namespace {

using ::testing::HasSubstr;

// It looks at the types of objects through a pipe: without files it errs.
#ifdef __has_feature
constexpr bool kUbsan = __has_feature(undefined_behavior_sanitizer);
#else
constexpr bool kUbsan = false;
#endif

class FlatStoreVersionsTest : public FlatStoreFixture {
 protected:
  static constexpr uint32_t kPages = 34;  // of a partition of SmallManifest

  // Another version with one partition.
  void PutOther() {
    auto store = FlatStore::Open(
        other_, {.dir = options_.dir, .reads = {.thread_count = 1}});
    ASSERT_THAT(store, IsOk());
    ASSERT_THAT(PutMade(**store, other_, Ref(0)), IsOk());
  }
  std::string OtherDir() const {
    return absl::StrCat(options_.dir, "/", VersionDirName(other_.version()));
  }

  const Manifest other_ = MakeManifest("tiny", 2048);
};

TEST_F(FlatStoreVersionsTest, OtherVersionsAreLeftAndCountUnlessTheyAreToGo) {
  PutOther();
  Open();
  const uint64_t others = store_->stats().other_version_bytes;
  EXPECT_EQ(others, 4096u * (1 + 17));
  EXPECT_EQ(store_->disk_bytes(), 0u);
  options_.max_bytes = others + 4096 * (1 + kPages) - 1;
  Open();
  EXPECT_THAT(PutMade(*store_, manifest_, Ref(0)),
              IsError(absl::StatusCode::kResourceExhausted,
                      HasSubstr(absl::StrCat(others, " of others"))));
  options_.remove_other_versions = true;
  Open();
  EXPECT_EQ(store_->stats().other_version_bytes, 0u);
  EXPECT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
}

TEST_F(FlatStoreVersionsTest, OtherVersionInUseIsNeverRemoved) {
  auto store = FlatStore::Open(
      other_, {.dir = options_.dir, .reads = {.thread_count = 1}});
  ASSERT_THAT(store, IsOk());
  ASSERT_THAT(PutMade(**store, other_, Ref(0)), IsOk());
  options_.remove_other_versions = true;
  Open();
  EXPECT_GT(store_->stats().other_version_bytes, 0u);
  EXPECT_THAT(ReadPartition(**store, other_, Ref(0)), IsOk());
}

// Somebody's directory that happens to have a version's name.
TEST_F(FlatStoreVersionsTest, DirectoryThatNoStoreUsedIsNeverRemoved) {
  const std::string file = "store/0123456789abcdef/layer-1/0.rows";
  std::filesystem::create_directories(
      std::filesystem::path(dir_.File(file)).parent_path());
  dir_.Write(file, "precious");
  options_.remove_other_versions = true;
  Open();
  EXPECT_EQ(ReadAll(dir_.File(file)), "precious");
  EXPECT_FALSE(
      std::filesystem::exists(dir_.File("store/0123456789abcdef/LOCK")));
  EXPECT_EQ(store_->stats().other_version_bytes, 8u);
}

TEST_F(FlatStoreVersionsTest, VersionWithSomethingStrangeIsLeftWhole) {
  for (const std::string name :
       {"/notes", "/layer-1/notes", "/layer-1/0.txt"}) {
    PutOther();
    const std::string notes = OtherDir() + name;
    std::ofstream(notes) << "precious";
    options_.remove_other_versions = true;
    Open();
    EXPECT_EQ(ReadAll(notes), "precious");
    EXPECT_TRUE(std::filesystem::exists(OtherDir() + "/layer-1/0.rows"));
    std::filesystem::remove(notes);
  }
  Open();
  EXPECT_FALSE(std::filesystem::exists(OtherDir()));
}

// What cannot be looked through may have something strange.
TEST_F(FlatStoreVersionsTest, VersionThatCannotBeLookedThroughIsLeftWhole) {
  if (kUbsan) GTEST_SKIP() << "this sanitizer needs files itself";
  PutOther();
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  // For the lock and the version's directory, not for that of the layer.
  const int first = open("/dev/null", O_RDONLY);
  const int second = open("/dev/null", O_RDONLY);
  close(first);
  close(second);
  rlimit two = before;
  two.rlim_cur = static_cast<rlim_t>(std::max(first, second)) + 1;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &two), 0);
  const absl::Status status =
      RemoveVersion(options_.dir, VersionDirName(other_.version()));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(status, IsError(absl::StatusCode::kUnavailable,
                              HasSubstr("Too many open files")));
  EXPECT_TRUE(std::filesystem::exists(OtherDir() + "/layer-1/0.rows"));
}

TEST_F(FlatStoreVersionsTest, RemovalThatCameToNoEndGoesOn) {
  PutOther();
  std::filesystem::rename(OtherDir(), OtherDir() + ".removed");
  std::filesystem::remove(OtherDir() + ".removed/LOCK");
  PutOther();
  Open();
  EXPECT_FALSE(std::filesystem::exists(OtherDir() + ".removed"));
  EXPECT_TRUE(std::filesystem::exists(OtherDir() + "/layer-1/0.rows"));
}

}  // namespace
}  // namespace engram::test
