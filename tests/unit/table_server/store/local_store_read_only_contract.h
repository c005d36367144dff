#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_LOCAL_STORE_READ_ONLY_CONTRACT_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_LOCAL_STORE_READ_ONLY_CONTRACT_H_

// What every LocalStore has to do, and to leave, when it is opened to be read
// only, and that it keeps its manifest.

#include <filesystem>
#include <map>

#include "table_server/store/store_manifest.h"
#include "tests/unit/table_server/store/local_store_contract.h"
#include "tests/unit/table_server/store/store_files_of.h"

namespace engram::test {

// Path -> contents, of a directory when it was changed last.
inline std::map<std::string, std::string> EverythingIn(const std::string& dir) {
  std::map<std::string, std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    found[entry.path()] =
        entry.is_regular_file()
            ? ReadAll(entry.path())
            : absl::StrCat(entry.last_write_time().time_since_epoch().count());
  }
  return found;
}

TEST_P(LocalStoreContract, ReadOnlyItLeavesWhatIsDamaged) {
  Open();
  PutAll(0);
  const std::vector<PartitionRef> refs = store_->Partitions();
  store_.reset();
  ASSERT_TRUE(DamageRow(dir_.File("store"), Rows(0, {FirstRow(2) + 1})));
  const auto before = EverythingIn(dir_.File("store"));
  Open({.read_only = true});
  EXPECT_EQ(store_->Partitions(), refs);
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(ReadPartition(*store_, manifest_, Ref(0, 2)),
                IsError(absl::StatusCode::kDataLoss, ::testing::_));
    EXPECT_THAT(FetchRows(*store_, manifest_, 0, {FirstRow(2) + 1}),
                IsError(absl::StatusCode::kDataLoss, ::testing::_));
    EXPECT_TRUE(store_->Has(Ref(0, 2)));
  }
  const auto sound = ReadPartition(*store_, manifest_, Ref(0, 1));
  ASSERT_THAT(sound, IsOk());
  EXPECT_EQ(*sound, MadePartition(manifest_, Ref(0, 1)));
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0, FirstRow(1)}), IsOk());
  EXPECT_EQ(store_->stats().dropped_damaged, 0u);
  EXPECT_THAT(store_->PlaceOf(Ref(0, 2)),
              ::testing::HasSubstr(dir_.File("store")));
  store_.reset();
  EXPECT_EQ(EverythingIn(dir_.File("store")), before);
}

TEST_P(LocalStoreContract, ReadOnlyItTakesNothing) {
  Open();
  PutAll(0);
  Open({.read_only = true});
  EXPECT_THAT(PutMade(*store_, manifest_, Ref(0, 0)),
              IsError(absl::StatusCode::kFailedPrecondition,
                      ::testing::HasSubstr("read only")));
  EXPECT_THAT(store_->Remove(Ref(0, 0)),
              IsError(absl::StatusCode::kFailedPrecondition,
                      ::testing::HasSubstr("read only")));
  Open();
  EXPECT_THAT(ReadPartition(*store_, manifest_, Ref(0, 0)), IsOk());
}

TEST_P(LocalStoreContract, ManyMayReadWhileNobodyWrites) {
  const StoreSetup write{.dir = dir_.File("store")};
  const StoreSetup read{.dir = dir_.File("store"), .read_only = true};
  const auto is_used = IsError(absl::StatusCode::kFailedPrecondition,
                               ::testing::HasSubstr("is in use by another"));
  Open();
  PutAll(0);
  EXPECT_THAT(GetParam().open(manifest_, read), is_used);
  Open({.read_only = true});
  const auto second = GetParam().open(manifest_, read);
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(ReadPartition(**second, manifest_, Ref(0, 0)), IsOk());
  EXPECT_THAT(GetParam().open(manifest_, write), is_used);
}

TEST_P(LocalStoreContract, ReadOnlyWhatNoStoreUsedIsLeft) {
  const StoreSetup read{.dir = dir_.File("store"), .read_only = true};
  EXPECT_THAT(GetParam().open(manifest_, read),
              IsError(absl::StatusCode::kFailedPrecondition,
                      ::testing::HasSubstr("no store used")));
  EXPECT_FALSE(std::filesystem::exists(dir_.File("store")));
  // Of another version there may be something.
  Open();
  store_.reset();
  const auto other = GetParam().open(
      MakeWideManifest(32), {.dir = dir_.File("store"), .read_only = true});
  if (other.ok()) {
    EXPECT_THAT((*other)->Partitions(), ::testing::IsEmpty());
  } else {
    EXPECT_THAT(other, IsError(absl::StatusCode::kFailedPrecondition,
                               ::testing::HasSubstr("no store used")));
  }
}

TEST_P(LocalStoreContract, KeepsItsManifest) {
  Open();
  const std::string folder = GetParam().manifests(dir_.File("store"));
  const auto kept = LoadKeptManifest(folder, "");
  ASSERT_THAT(kept, IsOk());
  EXPECT_EQ(kept->json(), manifest_.json());
  // One that is damaged is kept anew.
  const std::string path = absl::StrCat(
      folder, "/", manifest_.version().substr(0, 16), "/", kManifestFileName);
  std::filesystem::resize_file(path, 10);
  Open();
  EXPECT_EQ(ReadAll(path), manifest_.json());
}

TEST_P(LocalStoreContract, OtherVersionsGoWithTheirManifests) {
  const Manifest other = MakeWideManifest(32);
  ASSERT_THAT(GetParam().open(other, {.dir = dir_.File("store")}), IsOk());
  Open();
  const std::string folder = GetParam().manifests(dir_.File("store"));
  EXPECT_THAT(KeptVersions(folder).value(), ::testing::SizeIs(2));
  Open({.remove_other_versions = true});
  EXPECT_THAT(KeptVersions(folder).value(),
              ::testing::ElementsAre(manifest_.version().substr(0, 16)));
}

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_STORE_LOCAL_STORE_READ_ONLY_CONTRACT_H_
