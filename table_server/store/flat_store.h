#ifndef ENGRAM_TABLE_SERVER_STORE_FLAT_STORE_H_
#define ENGRAM_TABLE_SERVER_STORE_FLAT_STORE_H_

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
#include "table_server/store/file_cache.h"
#include "table_server/store/flat_page.h"
#include "table_server/store/local_store.h"
#include "table_server/store/partition_index.h"
#include "table_server/store/read_pool.h"
#include "table_server/store/store_dir.h"
#include "table_server/store/store_files.h"
#include "table_server/store/store_room.h"

namespace engram {

// One file for each partition (flat_page.h draws it): row ids are dense, so
// that the place of a row is known without an index.
//
//   DIR/<16 digits of the version>/LOCK
//                                 /engram_manifest.json
//                                 /layer-<id>/<partition>.rows
//                                 /layer-<id>/<partition>.rows.tmp  half
//                                 written
//
// Reads and writes pass by the kernel's page cache where the file system lets
// them: what is worth keeping in memory is kept by the tiers above.
class FlatStore final : public LocalStore {
 public:
  struct Options {
    std::string dir;  // made if it is not there; its parent is there
    // Of the directory with all versions, and what is being written; 0: no
    // limit. Other versions count as they were when this one was opened.
    uint64_t max_bytes = 0;
    ReadPool::Options reads;
    size_t max_open_files = 0;  // 0: half of what the process may open
    // Those that are in use are left. Otherwise others are told in the log.
    bool remove_other_versions = false;
    bool read_only = false;                   // as LocalStore has it
    StoreFiles* files = &StoreFiles::Disk();  // must outlive the store
    const Clock* clock = &Clock::Steady();
  };

  // Removes what was half written or is not of this table, and keeps the
  // manifest (store_manifest.h); a log line says so if that fails.
  // INVALID_ARGUMENT: rows beyond kMaxFlatRowBytes. FAILED_PRECONDITION:
  // somebody else uses this version's directory, or, to
  // read only, nobody ever did; else what the system says. `manifest` must
  // outlive the store.
  static absl::StatusOr<std::unique_ptr<FlatStore>> Open(
      const Manifest& manifest, const Options& options);

  std::string description() const override;
  std::string PlaceOf(const PartitionRef& ref) const override {
    return PathOf(ref);
  }
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
  StoreStats stats() const override;

 private:
  class PageFetch;

  FlatStore(const Manifest& manifest, const Options& options);

  absl::Status MakeDirs();
  absl::Status LookAtOthers();
  absl::Status FindPartitions();
  absl::StatusOr<std::vector<PartitionRef>> ListLayer(size_t layer_index);
  void TakeIn(const PartitionRef& ref, size_t layer_index);

  absl::Status CheckMayWrite() const;
  static uint64_t KeyOf(const PartitionRef& ref);
  std::string LayerDir(LayerId layer) const;
  std::string PathOf(const PartitionRef& ref) const;
  FlatHeader HeaderOf(size_t layer_index, const PartitionRef& ref) const;

  absl::Status WriteAndPlace(const FlatHeader& header,
                             absl::Span<const std::byte> packed,
                             size_t layer_index);
  absl::Status Place(const std::string& temp_path, const FlatHeader& header,
                     size_t layer_index);
  absl::Status BeginChange(size_t layer_index, const PartitionRef& ref);
  std::atomic<uint64_t>& FileBytes(size_t layer_index,
                                   const PartitionRef& ref) {
    return file_bytes_[layer_index][ToInt(ref.partition)];
  }
  // REQUIRES: a change was begun.
  absl::Status RemoveFile(size_t layer_index, const PartitionRef& ref);
  absl::Status RemoveForGood(size_t layer_index, const PartitionRef& ref);
  absl::StatusOr<std::shared_ptr<const StoreFile>> FileOf(
      const PartitionRef& ref);
  // As FailedReads has it.
  absl::Status ReadError(absl::Status status, size_t layer_index,
                         const PartitionRef& ref, StoredIndex::Seen seen);

  const Manifest& manifest_;
  const Options options_;
  StoreFiles& files_;
  const std::string version_dir_;
  std::unique_ptr<StoreLock> lock_;
  StoredIndex index_;
  // Room that the files have, also of partitions that are not there but whose
  // file could not be removed; by layer.
  std::vector<std::vector<std::atomic<uint64_t>>> file_bytes_;
  StoreRoom room_;
  StoreCounters counters_;
  FailedReads failed_reads_;
  FileCache open_files_;
  ReadPool pool_;  // last: its threads use the others
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_FLAT_STORE_H_
