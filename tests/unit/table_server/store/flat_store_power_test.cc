// The machine stops at every point of a Put: what is found afterwards is what
// was before or what was put, complete.

#include <filesystem>

#include "tests/unit/table_server/store/flat_store_fixture.h"

namespace engram::test {
namespace {

using Names = FaultyFiles::Names;

class FlatStorePowerTest : public FlatStoreFixture {
 protected:
  // Rows that are not those of MadePartition.
  std::string OldRows() const {
    return std::string(MadePartition(manifest_, Ref(0)).size(), 'o');
  }

  // Puts over `before` on a disk that stops after so many changes and then
  // loses its power. Whether the Put came to its end.
  bool PutAndStop(int changes, const std::string& before, Names names) {
    const TempDir dir;
    std::filesystem::create_directory(dir.File("scratch"));
    FaultyFiles files(dir.File("scratch"));
    FlatStore::Options options{.dir = dir.File("store"),
                               .reads = {.thread_count = 1},
                               .files = &files};
    std::unique_ptr<FlatStore> store =
        FlatStore::Open(manifest_, options).value();
    if (!before.empty()) {
      ENGRAM_CHECK(store->Put(Ref(0), BytesOf(before)).ok());
    }
    // Short writes, so that there are several of them.
    files.LimitTransfers(16 * 4096);
    files.StopAfter(changes);
    const bool done = PutMade(*store, manifest_, Ref(0)).ok();
    store.reset();
    files.LosePower(names);
    options.files = &StoreFiles::Disk();
    store_ = FlatStore::Open(manifest_, options).value();
    CheckFound(done, before);
    store_.reset();
    return done;
  }

  void CheckFound(bool put, const std::string& before) {
    EXPECT_EQ(store_->stats().removed_damaged, 0u);
    if (!store_->Has(Ref(0))) {
      EXPECT_FALSE(put);
      EXPECT_EQ(store_->disk_bytes(), 0u);
      return;
    }
    const auto rows = ReadPartition(*store_, manifest_, Ref(0));
    ASSERT_THAT(rows, IsOk());
    const bool is_new = *rows == MadePartition(manifest_, Ref(0));
    EXPECT_TRUE(is_new || *rows == before);
    EXPECT_TRUE(is_new || !put);
  }
};

TEST_F(FlatStorePowerTest, FirstPut) {
  for (const Names names : {Names::kLost, Names::kKept}) {
    int changes = 0;
    while (!PutAndStop(changes, "", names)) ++changes;
    EXPECT_GE(changes, 7);  // create, writes, sync, rename, sync
  }
}

TEST_F(FlatStorePowerTest, PutOverAnother) {
  for (const Names names : {Names::kLost, Names::kKept}) {
    int changes = 0;
    while (!PutAndStop(changes, OldRows(), names)) ++changes;
    EXPECT_GE(changes, 7);
  }
}

}  // namespace
}  // namespace engram::test
