// A RocksDB store whose files were damaged or lost while nobody had it open.

#include <filesystem>
#include <fstream>

#include "tests/unit/table_server/store/rocks_store_fixture.h"

namespace engram::test {
namespace {

using ::testing::HasSubstr;

enum class Damage { kGone, kTruncated, kEmpty, kFooter };

void DamageFile(const std::string& path, Damage damage) {
  const uint64_t bytes = std::filesystem::file_size(path);
  switch (damage) {
    case Damage::kGone:
      std::filesystem::remove(path);
      return;
    case Damage::kTruncated:
      std::filesystem::resize_file(path, bytes - 4096);
      return;
    case Damage::kEmpty:
      std::filesystem::resize_file(path, 0);
      return;
    case Damage::kFooter:
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(-6, std::ios::end);
      file << "????";
      return;
  }
}

class ThreeInRocksTest : public RocksStoreFixture {
 protected:
  void SetUp() override {
    Open();
    for (const PartitionRef& ref : all_) {
      ASSERT_THAT(PutMade(*store_, manifest_, ref), IsOk());
    }
    bytes_ = store_->disk_bytes();
  }

  void ExpectThere(const std::vector<PartitionRef>& refs) {
    EXPECT_EQ(store_->Partitions(), refs);
    for (const PartitionRef& ref : refs) {
      const auto rows = ReadPartition(*store_, manifest_, ref);
      ASSERT_THAT(rows, IsOk());
      EXPECT_EQ(*rows, MadePartition(manifest_, ref));
    }
  }

  // Without its second partition, with it again, and as if nothing had been.
  void ExpectItMends() {
    Open();
    ASSERT_NE(store_, nullptr);
    EXPECT_EQ(store_->stats().removed_damaged, 1u);
    ExpectThere({Ref(0), Ref(2)});
    EXPECT_FALSE(store_->Has(Ref(1)));
    EXPECT_THAT(FetchRows(*store_, manifest_, 0, {FirstRow(1)}),
                IsError(absl::StatusCode::kNotFound, ::testing::_));
    EXPECT_LT(store_->disk_bytes(), bytes_);
    Open();
    EXPECT_EQ(FileOf(1), "");
    EXPECT_EQ(store_->stats().removed_damaged, 0u);
    ExpectThere({Ref(0), Ref(2)});
    ASSERT_THAT(PutMade(*store_, manifest_, Ref(1)), IsOk());
    Open();
    EXPECT_EQ(store_->stats().removed_damaged, 0u);
    EXPECT_EQ(store_->stats().removed_half_written, 0u);
    EXPECT_EQ(store_->disk_bytes(), bytes_);
    ExpectThere(all_);
  }

  const std::vector<PartitionRef> all_ = {Ref(0), Ref(1), Ref(2)};
  uint64_t bytes_ = 0;
};

class RocksStoreDamageTest : public ThreeInRocksTest,
                             public ::testing::WithParamInterface<Damage> {};

TEST_P(RocksStoreDamageTest, PartitionOfADamagedFileIsLeftOut) {
  const std::string path = FileOf(1);
  store_.reset();
  DamageFile(path, GetParam());
  ExpectItMends();
}

// Each has a file for itself: they were put one after another.
TEST_P(RocksStoreDamageTest, PartitionOfADamagedMarkerIsLeftOut) {
  const std::string path = FileWith(options_.dir, "layer 1 partition 1 rows");
  ASSERT_NE(path, "");
  store_.reset();
  if (GetParam() == Damage::kTruncated) {
    std::filesystem::resize_file(path, 100);
  } else {
    DamageFile(path, GetParam());
  }
  ExpectItMends();
}

TEST_P(RocksStoreDamageTest, FilesOfOtherVersionsToo) {
  store_.reset();
  const Manifest other = MakeManifest("tiny", 2048);
  {
    auto store = RocksStore::Open(other, options_);
    ASSERT_THAT(store, IsOk());
    ASSERT_THAT(PutMade(**store, other, Ref(0)), IsOk());
    ASSERT_THAT(PutMade(**store, other, Ref(1)), IsOk());
  }
  const std::string path =
      FileWith(options_.dir, MadeRows(other, Ref(0).layer, {2048}));
  ASSERT_NE(path, "");
  DamageFile(path, GetParam());
  Open();
  ASSERT_NE(store_, nullptr);
  ExpectThere(all_);
  EXPECT_EQ(store_->stats().removed_damaged, 1u);
  store_.reset();
  auto store = RocksStore::Open(other, options_);
  ASSERT_THAT(store, IsOk());
  EXPECT_EQ((*store)->Partitions(), std::vector<PartitionRef>{Ref(0)});
}

INSTANTIATE_TEST_SUITE_P(Damages, RocksStoreDamageTest,
                         ::testing::Values(Damage::kGone, Damage::kTruncated,
                                           Damage::kEmpty, Damage::kFooter));

class RocksStoreCatalogueTest : public RocksStoreDamageTest {};

// What RocksDB calls its manifest.
TEST_P(RocksStoreCatalogueTest, DamagedItSaysWhatToRemove) {
  store_.reset();
  const std::string db_dir = options_.dir + "/rocksdb";
  for (const auto& file : std::filesystem::directory_iterator(db_dir)) {
    const std::string name = file.path().filename();
    if (name.substr(0, 8) == "MANIFEST") DamageFile(file.path(), GetParam());
  }
  EXPECT_THAT(
      RocksStore::Open(manifest_, options_),
      IsError(absl::StatusCode::kDataLoss, HasSubstr("remove " + db_dir)));
  EXPECT_TRUE(std::filesystem::exists(db_dir));
  std::filesystem::remove_all(db_dir);
  Open();
  ExpectThere({});
}

INSTANTIATE_TEST_SUITE_P(Damages, RocksStoreCatalogueTest,
                         ::testing::Values(Damage::kGone, Damage::kEmpty));

TEST_F(ThreeInRocksTest, FileOfAnotherSizeIsLeftOut) {
  const std::string path = FileOf(1);
  const std::string other = FileWith(options_.dir, "layer 1 partition 2 rows");
  store_.reset();
  std::filesystem::copy_file(other, path,
                             std::filesystem::copy_options::overwrite_existing);
  ExpectItMends();
}

// RocksDB does not open all files at once: reads find those that it did not.
TEST_F(ThreeInRocksTest, OneDamagedFileOfManyIsLeftOutWhoeverFindsIt) {
  store_.reset();
  const Manifest many = MakeManifest("tiny", 512);
  auto store = RocksStore::Open(many, options_);
  ASSERT_THAT(store, IsOk());
  for (uint32_t p = 0; p < 20; ++p) {
    ASSERT_THAT(PutMade(**store, many, Ref(p)), IsOk());
  }
  store->reset();
  DamageFile(FileWith(options_.dir, MadeRows(many, Ref(0).layer, {19 * 512})),
             Damage::kFooter);
  store = RocksStore::Open(many, options_);
  ASSERT_THAT(store, IsOk());
  for (RowId p = 0; p < 20; ++p) {
    EXPECT_EQ(FetchRows(**store, many, 0, {p * 512}).ok(), p < 19) << p;
  }
  store->reset();
  store = RocksStore::Open(many, options_);
  ASSERT_THAT(store, IsOk());
  EXPECT_EQ((*store)->stats().removed_damaged, 0u);
  EXPECT_EQ((*store)->stats().partitions, 19u);
  EXPECT_FALSE((*store)->Has(Ref(19)));
}

// RocksDB makes a new one then.
TEST_F(ThreeInRocksTest, WithoutItsCatalogueItIsEmpty) {
  store_.reset();
  std::filesystem::remove(options_.dir + "/rocksdb/CURRENT");
  Open();
  ASSERT_NE(store_, nullptr);
  ExpectThere({});
  EXPECT_EQ(FileOf(1), "");  // and nothing takes room for ever
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(1)), IsOk());
  Open();
  ExpectThere({Ref(1)});
}

}  // namespace
}  // namespace engram::test
