#ifndef ENGRAM_TABLE_SERVER_STORE_ROCKS_DB_H_
#define ENGRAM_TABLE_SERVER_STORE_ROCKS_DB_H_

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/ids.h"
#include "table_server/store/rocks_files.h"

namespace engram {

// Two numbers big-endian, so that keys stand in the order of partitions and
// blocks.
class RocksKey {
 public:
  static RocksKey OfBlock(PartitionId partition, uint32_t block) {
    return {ToInt(partition), block};
  }
  static RocksKey OfMarker(const PartitionRef& ref) {
    return {ToInt(ref.layer), ToInt(ref.partition)};
  }
  rocksdb::Slice slice() const { return {bytes_.data(), bytes_.size()}; }

 private:
  RocksKey(uint32_t first, uint32_t second);

  std::array<char, 8> bytes_;
};

// DATA_LOSS: corruption; RESOURCE_EXHAUSTED: no room; NOT_FOUND: a key or a
// file; everything else UNAVAILABLE, of which IsMediaError tells the disk's
// own. `what` comes before what RocksDB says.
absl::Status FromRocks(const rocksdb::Status& status, const std::string& what);

// A database and its column families: one of blocks for each layer, and one of
// markers.
//
// Into those of blocks come whole files only, each of one partition, and over
// no other: RocksDB has them in the last level and does not compact them. A
// file stays what it was put as, and is deleted without being read.
//
// Thread safety: all methods may be called concurrently.
class RocksDatabase {
 public:
  struct Options {
    std::string dir;
    // One's own, made if they are not there.
    std::vector<std::string> families;  // of blocks
    std::string marker_family;
    size_t block_bytes = 0;  // of values that are read
    size_t max_open_files = 0;
    bool direct_io = true;
    // Writes nothing, and takes a database of which files are gone. Families
    // that are not there are as if they were empty.
    bool read_only = false;
    // As above, but it may be changed: for RemoveDamagedFiles.
    bool takes_damaged = false;
    std::shared_ptr<rocksdb::FileSystem> files = rocksdb::FileSystem::Default();
  };

  // A file of blocks.
  struct BlockFile {
    std::string name;
    PartitionId first, last;  // of its blocks
    uint64_t bytes = 0;
    int level = 0;
  };

  // Of the file system, at most, that a value of so many bytes takes: a block
  // is whole pages.
  static uint64_t DiskBytesOfBlock(size_t value_bytes);
  // As many as a page has place for, or one.
  static uint32_t RowsPerBlock(size_t row_bytes);

  static absl::StatusOr<std::unique_ptr<RocksDatabase>> Open(
      const Options& options);
  // Takes files that are gone or that RocksDB cannot open, each told in the
  // log, out of a database that Open finds damaged (DATA_LOSS, NOT_FOUND): how
  // many. Other files stay, and so do all of other families than a store's.
  // REQUIRES: it is not open, and not to be read only.
  static absl::StatusOr<size_t> RemoveDamagedFiles(Options options);
  ~RocksDatabase();
  RocksDatabase(const RocksDatabase&) = delete;
  RocksDatabase& operator=(const RocksDatabase&) = delete;

  rocksdb::DB& db() { return *db_; }
  // By its place in Options::families. Null: read_only, and it is not there.
  rocksdb::ColumnFamilyHandle* family(size_t i) const { return own_.at(i); }
  rocksdb::ColumnFamilyHandle* marker_family() const { return own_.back(); }
  bool HasMarkers() const { return marker_family() != nullptr; }
  const rocksdb::Options& options() const { return options_; }

  std::vector<BlockFile> FilesOf(size_t i) const;
  // All files with blocks of these partitions only. Of none: OK.
  absl::Status DeleteFiles(size_t i, PartitionId first, PartitionId last);
  // Those that lie over others, which reads and writes all of their partitions:
  // there are none but of a process that ended while it replaced some.
  absl::Status MoveToLastLevel(size_t i);

  // The families of other table versions.
  uint64_t OtherBytes() const { return BytesOf(others_); }
  std::vector<std::string> Others() const;
  absl::Status DropOthers();

  uint64_t open_files() const { return files_->open(); }
  uint64_t index_bytes() const;  // of memory
  uint64_t background_errors() const;

 private:
  explicit RocksDatabase(const Options& options);

  absl::Status OpenFamilies(const Options& options);
  static std::vector<BlockFile> FilesOf(rocksdb::DB& db,
                                        rocksdb::ColumnFamilyHandle* family);
  absl::Status DeleteFilesIn(rocksdb::ColumnFamilyHandle* family,
                             PartitionId first, PartitionId last);
  // Damaged ones of a family.
  std::vector<BlockFile> FindDamaged(rocksdb::ColumnFamilyHandle* family) const;
  bool IsDamaged(const BlockFile& file) const;
  absl::StatusOr<size_t> RemoveDamagedOf(rocksdb::ColumnFamilyHandle*& family);
  absl::Status RebuildMarkers(rocksdb::ColumnFamilyHandle*& family);
  uint64_t BytesOf(
      const std::vector<rocksdb::ColumnFamilyHandle*>& families) const;

  const std::shared_ptr<CountingFiles> files_;
  const std::unique_ptr<rocksdb::Env> env_;
  const rocksdb::Options options_;  // of families of blocks
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> own_;  // the last is of markers
  std::vector<rocksdb::ColumnFamilyHandle*> others_;
  std::vector<rocksdb::ColumnFamilyHandle*> strange_;  // not of a store
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_ROCKS_DB_H_
