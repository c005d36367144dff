#ifndef ENGRAM_TABLE_SERVER_STORE_ROCKS_STORE_H_
#define ENGRAM_TABLE_SERVER_STORE_ROCKS_STORE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/model/manifest.h"
#include "table_server/store/failed_reads.h"
#include "table_server/store/local_store.h"
#include "table_server/store/partition_index.h"
#include "table_server/store/read_pool.h"
#include "table_server/store/rocks_db.h"
#include "table_server/store/store_dir.h"
#include "table_server/store/store_room.h"

namespace engram {

// Partitions in RocksDB, each brought in as one SST file.
//
//   DIR/rocksdb           the database: column families <version>/layer-<id>
//                         and <version>/markers for each table version
//   DIR/rocksdb-ingest    LOCK, and SST files that are being written
//   DIR/rocksdb-manifests/<version>/engram_manifest.json
//
//   of a layer    key    partition u32, block u32
//                 value  rows_per_block rows of the partition, fewer in the
//                        last block
//   of markers    key    layer u32, partition u32
//                 value  what the partition is, as text
//
// Keys are big-endian. A partition is there while it has a marker, which is
// written after its file and deleted before it: both are done once they have
// been synced. Files are deleted whole and unread, so that a damaged one goes
// as others do.
//
// Reads are direct where the file system can, and nothing is cached: what is
// worth keeping in memory is kept by the tiers above. RocksDB keeps an index
// entry for each block of the files that it has open in memory.
class RocksStore final : public LocalStore {
 public:
  struct Options {
    std::string dir;         // made if it is not there; its parent is there
    uint64_t max_bytes = 0;  // of the tables of all versions; 0: no limit
    ReadPool::Options reads;
    size_t max_open_files = 0;           // 0: half of what the process may open
    bool remove_other_versions = false;  // otherwise they are told in the log
    bool read_only = false;              // as LocalStore has it
    uint32_t rows_per_block = 0;         // 0: as many as a page has place for
    std::shared_ptr<rocksdb::FileSystem> files = rocksdb::FileSystem::Default();
    const Clock* clock = &Clock::Steady();
  };

  // As FlatStore::Open, but FAILED_PRECONDITION: somebody else uses the
  // directory, whatever the version; DATA_LOSS: the database cannot be mended,
  // and what to remove.
  static absl::StatusOr<std::unique_ptr<RocksStore>> Open(
      const Manifest& manifest, const Options& options);

  std::string description() const override;
  std::string PlaceOf(const PartitionRef& ref) const override;
  std::vector<PartitionRef> Partitions() const override {
    return index_.List();
  }
  bool Has(const PartitionRef& ref) const override;
  absl::Status Put(const PartitionRef& ref,
                   absl::Span<const std::byte> packed) override;
  absl::Status Remove(const PartitionRef& ref) override;
  absl::Status Read(
      const PartitionRef& ref, absl::Span<std::byte> out,
      absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) override;
  void Fetch(RowFetch fetch, OnRows done) override;
  uint64_t disk_bytes() const override { return room_.used(); }
  uint64_t DiskBytesOf(const PartitionRef& ref) const override;
  // Of as many as may be open at once.
  uint64_t MemoryBytesOf(absl::Span<const PartitionRef> refs) const override;
  StoreStats stats() const override;

 private:
  class BlockGet;

  RocksStore(const Manifest& manifest, const Options& options);

  absl::Status MakeDirs();
  absl::Status OpenDatabase();
  absl::Status LookAtOthers();
  absl::Status RemoveHalfWritten();
  absl::Status FindPartitions();
  // How many bytes the file of each partition of a layer has.
  absl::StatusOr<std::vector<uint64_t>> ListFiles(size_t layer_index);
  void TakeIn(size_t layer_index, PartitionId partition, uint64_t file_bytes);

  // What the marker of a partition says.
  std::string MarkerOf(size_t layer_index, const PartitionRef& ref) const;
  std::string NameOf(const PartitionRef& ref) const;  // for messages
  uint64_t BlocksOf(const PartitionRef& ref) const;
  size_t block_bytes() const {
    return rows_per_block_ * manifest_.row_format().row_bytes();
  }

  absl::Status CheckMayWrite() const;
  // DATA_LOSS: the marker or the file is not what it should be.
  absl::Status CheckMarker(size_t layer_index, const PartitionRef& ref) const;

  absl::Status BeginChange(size_t layer_index, const PartitionRef& ref);
  // `taken`: of the room, less what a file that is there has then.
  absl::Status WriteAndBringIn(size_t layer_index, const PartitionRef& ref,
                               absl::Span<const std::byte> packed,
                               uint64_t& taken);
  // How many bytes it has.
  absl::StatusOr<uint64_t> WriteFile(const std::string& path,
                                     size_t layer_index,
                                     const PartitionRef& ref,
                                     absl::Span<const std::byte> packed);
  // What follows REQUIRES that a change was begun.
  absl::Status BringIn(const std::string& path, uint64_t file_bytes,
                       size_t layer_index, const PartitionRef& ref,
                       uint64_t& taken);
  // Empty: deletes it.
  absl::Status WriteMarker(const PartitionRef& ref, const std::string& marker);
  absl::Status DropFiles(size_t layer_index, const PartitionRef& ref);
  absl::Status DeleteFiles(size_t layer_index, const PartitionRef& ref);
  // After an error RocksDB takes no writes until it is told to go on; when the
  // disk was full it goes on by itself, and this is UNAVAILABLE until then.
  absl::Status GoOn();
  absl::Status Wrote(const rocksdb::Status& status, const PartitionRef& ref);

  absl::Status CopyBlocks(rocksdb::Iterator& blocks, const PartitionRef& ref,
                          absl::Span<std::byte> out,
                          absl::FunctionRef<absl::Status(size_t)> on_bytes,
                          absl::Status& stopped);
  // As FailedReads has it.
  absl::Status ReadError(absl::Status status, size_t layer_index,
                         const PartitionRef& ref, StoredIndex::Seen seen);

  const Manifest& manifest_;
  const Options options_;
  const uint32_t rows_per_block_;
  const std::string db_dir_;
  const std::string ingest_dir_;
  std::unique_ptr<StoreLock> lock_;
  std::unique_ptr<RocksDatabase> db_;
  StoredIndex index_;
  // Of the files that are there, whole partitions or not, by layer.
  std::vector<std::vector<std::atomic<uint64_t>>> file_bytes_;
  StoreRoom room_;
  StoreCounters counters_;
  FailedReads failed_reads_;
  std::atomic<bool> stopped_{false};  // RocksDB may have
  ReadPool pool_;                     // last: its threads use the others
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_ROCKS_STORE_H_
