// A RocksDB store on a disk that fails or has lost files.

#include <atomic>
#include <filesystem>

#include "core/base/clock.h"
#include "table_server/store/damaged_partition.h"
#include "table_server/store/media_errors.h"
#include "tests/unit/table_server/store/rocks_store_fixture.h"

namespace engram::test {
namespace {

using ::testing::HasSubstr;

using rocksdb::IOStatus;

enum class ReadFault { kNone, kGone, kTooManyOpen, kMedia };

// The machine's file system, with faults.
class FaultyRocksFiles final : public rocksdb::FileSystemWrapper {
 public:
  FaultyRocksFiles() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "FaultyRocksFiles"; }

  std::atomic<bool> takes_no_writes{false};
  std::atomic<bool> takes_no_tables{false};
  std::string faulty_path;  // set before the fault
  std::atomic<ReadFault> read_fault{ReadFault::kNone};

  IOStatus NewWritableFile(const std::string& path,
                           const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           rocksdb::IODebugContext* context) override {
    if (takes_no_writes || (takes_no_tables && path.ends_with(".sst"))) {
      IOStatus status = IOStatus::IOError("no writes", path);
      status.SetRetryable(true);  // as a disk that may come back
      return status;
    }
    return target()->NewWritableFile(path, options, result, context);
  }
  IOStatus NewRandomAccessFile(
      const std::string& path, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
      rocksdb::IODebugContext* context) override {
    std::unique_ptr<rocksdb::FSRandomAccessFile> file;
    IOStatus status =
        target()->NewRandomAccessFile(path, options, &file, context);
    if (status.ok()) {
      *result = std::make_unique<File>(std::move(file), path, *this);
    }
    return status;
  }

 private:
  class File final : public rocksdb::FSRandomAccessFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSRandomAccessFile> file, std::string path,
         const FaultyRocksFiles& files)
        : FSRandomAccessFileOwnerWrapper(std::move(file)),
          path_(std::move(path)),
          files_(files) {}
    IOStatus Read(uint64_t offset, size_t count,
                  const rocksdb::IOOptions& options, rocksdb::Slice* result,
                  char* scratch,
                  rocksdb::IODebugContext* context) const override {
      const ReadFault fault = files_.read_fault;
      if (fault != ReadFault::kNone && path_ == files_.faulty_path) {
        switch (fault) {
          case ReadFault::kGone:
            return IOStatus::PathNotFound("no such file");
          case ReadFault::kMedia:
            return IOStatus::IOError("While pread", "Input/output error");
          default:
            return IOStatus::IOError("too many open files");
        }
      }
      return target()->Read(offset, count, options, result, scratch, context);
    }

   private:
    const std::string path_;
    const FaultyRocksFiles& files_;
  };
};

class RocksStoreFaultsTest : public RocksStoreFixture {
 protected:
  RocksStoreFaultsTest() {
    options_.files = files_;
    options_.clock = &clock_;
  }
  ~RocksStoreFaultsTest() override { store_.reset(); }

  const std::shared_ptr<FaultyRocksFiles> files_ =
      std::make_shared<FaultyRocksFiles>();
  FakeClock clock_{absl::UnixEpoch()};
};

// RocksDB stops all writes at some errors and has to be told to go on.
TEST_F(RocksStoreFaultsTest, TakesPartitionsAgainAfterTheDiskTookNone) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
  files_->takes_no_writes = true;
  const auto says =
      IsError(absl::StatusCode::kUnavailable, HasSubstr("no writes"));
  EXPECT_THAT(PutMade(*store_, manifest_, Ref(1)), says);
  EXPECT_THAT(store_->Remove(Ref(0)), says);
  EXPECT_FALSE(PutMade(*store_, manifest_, Ref(1)).ok());
  files_->takes_no_writes = false;
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(1)), IsOk());
  EXPECT_GT(store_->stats().background_errors, 0u);
  const uint64_t bytes = store_->disk_bytes();
  Open();
  EXPECT_EQ(store_->Partitions(), (std::vector<PartitionRef>{Ref(0), Ref(1)}));
  EXPECT_EQ(store_->disk_bytes(), bytes);
}

TEST_F(RocksStoreFaultsTest, WhatCouldNotBeRemovedIsThereUntilItIs) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
  const uint64_t bytes = store_->disk_bytes();
  files_->takes_no_writes = true;
  EXPECT_FALSE(store_->Remove(Ref(0)).ok());
  EXPECT_TRUE(store_->Has(Ref(0)));
  EXPECT_EQ(store_->disk_bytes(), bytes);
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0}), IsOk());
  files_->takes_no_writes = false;
  ASSERT_THAT(store_->Remove(Ref(0)), IsOk());
  EXPECT_EQ(store_->disk_bytes(), 0u);
  EXPECT_FALSE(store_->Has(Ref(0)));
}

// They count until they could be moved.
TEST_F(RocksStoreFaultsTest, FilesThatLieOverOthersWhenItOpensAreRemoved) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(1)), IsOk());
  const uint64_t bytes = store_->disk_bytes();
  PutOver(0);
  files_->takes_no_tables = true;
  Open();
  EXPECT_GT(store_->disk_bytes(), bytes);
  EXPECT_FALSE(store_->Remove(Ref(0)).ok());
  EXPECT_GT(store_->disk_bytes(), bytes);
  files_->takes_no_tables = false;
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
  EXPECT_EQ(store_->disk_bytes(), bytes);
  ASSERT_THAT(store_->Remove(Ref(0)), IsOk());
  EXPECT_EQ(store_->disk_bytes(), bytes / 2);
  EXPECT_EQ(OpenDatabase()->FilesOf(0).size(), 1u);
}

// One file is gone, and reads of another fail: that one is not damaged.
TEST_F(RocksStoreFaultsTest, WhatCannotBeReadWhenItOpensStays) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(1)), IsOk());
  files_->faulty_path = FileOf(0);
  const std::string gone = FileOf(1);
  store_.reset();
  std::filesystem::remove(gone);
  files_->read_fault = ReadFault::kTooManyOpen;
  EXPECT_THAT(RocksStore::Open(manifest_, options_),
              IsError(absl::StatusCode::kUnavailable,
                      HasSubstr("too many open files")));
  files_->read_fault = ReadFault::kNone;
  Open();
  EXPECT_EQ(store_->Partitions(), std::vector<PartitionRef>{Ref(0)});
}

TEST_F(RocksStoreFaultsTest, PartitionWhoseFileIsGoneIsDropped) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(1)), IsOk());
  files_->faulty_path = FileOf(0);
  files_->read_fault = ReadFault::kGone;
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0}),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("partition 0")));
  files_->read_fault = ReadFault::kNone;
  EXPECT_FALSE(store_->Has(Ref(0)));
  EXPECT_EQ(store_->stats().dropped_damaged, 1u);
  Open();
  EXPECT_EQ(store_->Partitions(), std::vector<PartitionRef>{Ref(1)});
}

TEST_F(RocksStoreFaultsTest, ReadErrorsDropNothing) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
  files_->faulty_path = FileOf(0);
  files_->read_fault = ReadFault::kTooManyOpen;
  const auto says =
      IsError(absl::StatusCode::kUnavailable, HasSubstr("too many open files"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0}), says);
  }
  EXPECT_THAT(ReadPartition(*store_, manifest_, Ref(0)), says);
  files_->read_fault = ReadFault::kNone;
  EXPECT_TRUE(store_->Has(Ref(0)));
  EXPECT_EQ(store_->stats().dropped_damaged, 0u);
  EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0}), IsOk());
}

// A bad sector stays bad until it is written to, however well the others are
// read meanwhile.
TEST_F(RocksStoreFaultsTest, CopyThatTheDiskFailsThreeTimesIsDropped) {
  Open();
  for (int round = 0; round < 2; ++round) {
    ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
    files_->faulty_path = FileOf(0);
    for (int i = 0; i < 2; ++i) {
      files_->read_fault = ReadFault::kMedia;
      EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0}),
                  IsError(absl::StatusCode::kUnavailable,
                          HasSubstr("Input/output error")));
      files_->read_fault = ReadFault::kNone;
      EXPECT_THAT(FetchRows(*store_, manifest_, 0, {0}), IsOk());
      clock_.Advance(MediaErrors::kSpacing);
    }
    ASSERT_TRUE(store_->Has(Ref(0)));
    files_->read_fault = ReadFault::kMedia;
    const auto lost = FetchRows(*store_, manifest_, 0, {0});
    EXPECT_THAT(lost, IsError(absl::StatusCode::kDataLoss,
                              HasSubstr("Input/output error")));
    EXPECT_EQ(DamagedPartitionOf(lost.status()), Ref(0));
    files_->read_fault = ReadFault::kNone;
    EXPECT_FALSE(store_->Has(Ref(0)));
    EXPECT_EQ(store_->stats().dropped_damaged, 1u + round);
  }
  EXPECT_EQ(store_->stats().read_errors, 6u);
}

// The kernel fails reads of memory that is not there as disks fail bad sectors.
TEST_F(RocksStoreFaultsTest, TellsErrorsOfTheMediumFromOthers) {
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  ASSERT_TRUE(rocksdb::FileSystem::Default()
                  ->NewRandomAccessFile("/proc/self/mem", {}, &file, nullptr)
                  .ok());
  char scratch[100];
  rocksdb::Slice got;
  const IOStatus bad =
      file->Read(0, sizeof(scratch), {}, &got, scratch, nullptr);
  EXPECT_TRUE(IsMediaError(FromRocks(bad, "memory"))) << bad.ToString();
  EXPECT_FALSE(IsMediaError(FromRocks(IOStatus::IOError("other"), "memory")));
}

// A file that could not be removed from where it was written is a link to one
// of the database.
TEST_F(RocksStoreFaultsTest, WhatIsLeftWhereItWritesIsNotWrittenTo) {
  Open();
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(0)), IsOk());
  std::filesystem::create_hard_link(FileOf(0),
                                    options_.dir + "/rocksdb-ingest/1-1.sst");
  ASSERT_THAT(PutMade(*store_, manifest_, Ref(1)), IsOk());
  for (const uint32_t p : {0u, 1u}) {
    const auto rows = ReadPartition(*store_, manifest_, Ref(p));
    ASSERT_THAT(rows, IsOk());
    EXPECT_EQ(*rows, MadePartition(manifest_, Ref(p)));
  }
}

}  // namespace
}  // namespace engram::test
