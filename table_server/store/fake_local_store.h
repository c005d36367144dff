#ifndef ENGRAM_TABLE_SERVER_STORE_FAKE_LOCAL_STORE_H_
#define ENGRAM_TABLE_SERVER_STORE_FAKE_LOCAL_STORE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/thread_pool.h"
#include "core/model/manifest.h"
#include "table_server/store/damaged_partition.h"
#include "table_server/store/local_store.h"

namespace engram {

// A store for tests: in memory, with faults that the test switches.
class FakeLocalStore final : public LocalStore {
 public:
  static constexpr uint64_t kFileBytes = 100;  // beside the rows

  // `manifest` must outlive it.
  explicit FakeLocalStore(const Manifest& manifest)
      : row_bytes_(manifest.row_format().row_bytes()), manifest_(manifest) {}

  // OK: no fault.
  void FailPuts(const absl::Status& status) {
    MutexLock lock(&mutex_);
    put_fault_ = status;
  }
  // Of rows and of whole partitions.
  void FailReads(const absl::Status& status) {
    MutexLock lock(&mutex_);
    read_fault_ = status;
  }
  // Reads of it are DATA_LOSS until it is put anew.
  void Damage(const PartitionRef& ref) {
    MutexLock lock(&mutex_);
    damaged_.insert(ref);
  }
  // Other bytes that nothing tells from the right ones. REQUIRES: it is there.
  void Replace(const PartitionRef& ref, std::string rows) {
    MutexLock lock(&mutex_);
    partitions_.at(ref) = std::move(rows);
  }
  // Of each Remove, or Put, before it does anything, on its thread; null: of
  // none.
  void OnRemove(std::function<void(const PartitionRef&)> told) {
    MutexLock lock(&mutex_);
    on_remove_ = std::move(told);
  }
  void OnPut(std::function<void(const PartitionRef&)> told) {
    MutexLock lock(&mutex_);
    on_put_ = std::move(told);
  }
  void FailRemoves(const absl::Status& status) {
    MutexLock lock(&mutex_);
    remove_fault_ = status;
  }
  // So many of the next calls of Put and Remove are ABORTED.
  void AbortChanges(int count) {
    MutexLock lock(&mutex_);
    aborts_ = count;
  }
  void SetMemoryBytesOfOne(uint64_t bytes) {
    MutexLock lock(&mutex_);
    memory_bytes_of_one_ = bytes;
  }
  void SetOtherVersionBytes(uint64_t bytes) {
    MutexLock lock(&mutex_);
    other_version_bytes_ = bytes;
  }
  // More partitions are RESOURCE_EXHAUSTED.
  void SetCapacity(size_t partitions) {
    MutexLock lock(&mutex_);
    capacity_ = partitions;
  }
  uint64_t puts() const {  // that were tried
    MutexLock lock(&mutex_);
    return puts_;
  }
  uint64_t fetched_rows() const {
    MutexLock lock(&mutex_);
    return fetched_rows_;
  }
  uint64_t reads() const {  // of whole partitions
    MutexLock lock(&mutex_);
    return reads_;
  }

  std::string description() const override { return "fake store"; }
  std::vector<PartitionRef> Partitions() const override {
    MutexLock lock(&mutex_);
    std::vector<PartitionRef> refs;
    for (const auto& [ref, rows] : partitions_) refs.push_back(ref);
    return refs;
  }
  bool Has(const PartitionRef& ref) const override {
    MutexLock lock(&mutex_);
    return partitions_.contains(ref);
  }
  absl::Status Put(const PartitionRef& ref,
                   absl::Span<const std::byte> packed) override {
    std::function<void(const PartitionRef&)> told;
    {
      MutexLock lock(&mutex_);
      told = on_put_;
    }
    if (told) told(ref);
    MutexLock lock(&mutex_);
    ++puts_;
    if (Aborts()) return absl::AbortedError("being dropped");
    if (!put_fault_.ok()) return put_fault_;
    if (!partitions_.contains(ref) && partitions_.size() >= capacity_) {
      return absl::ResourceExhaustedError("the store is full");
    }
    partitions_[ref].assign(reinterpret_cast<const char*>(packed.data()),
                            packed.size());
    damaged_.erase(ref);
    return absl::OkStatus();
  }
  absl::Status Remove(const PartitionRef& ref) override {
    std::function<void(const PartitionRef&)> told;
    {
      MutexLock lock(&mutex_);
      told = on_remove_;
    }
    if (told) told(ref);
    MutexLock lock(&mutex_);
    if (Aborts()) return absl::AbortedError("being dropped");
    if (!remove_fault_.ok()) return remove_fault_;
    partitions_.erase(ref);
    damaged_.erase(ref);
    return absl::OkStatus();
  }
  absl::Status Read(
      const PartitionRef& ref, absl::Span<std::byte> out,
      absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) override {
    {
      MutexLock lock(&mutex_);
      ++reads_;
      const absl::Status status = CheckReadable(ref);
      if (!status.ok()) return status;
      std::memcpy(out.data(), partitions_.at(ref).data(), out.size());
    }
    return on_bytes(out.size());
  }
  void Fetch(RowFetch fetch, OnRows done) override {
    const bool added = threads_.TryAdd(
        [this, fetch = std::move(fetch), done = std::move(done)]() mutable {
          done(ReadRows(fetch));
        });
    ENGRAM_CHECK(added);
  }
  uint64_t disk_bytes() const override {
    MutexLock lock(&mutex_);
    return BytesNow();
  }
  uint64_t DiskBytesOf(const PartitionRef& ref) const override {
    return kFileBytes +
           row_bytes_ *
               manifest_.RowsIn(*manifest_.IndexOf(ref.layer), ref.partition);
  }
  uint64_t MemoryBytesOf(absl::Span<const PartitionRef> refs) const override {
    MutexLock lock(&mutex_);
    return refs.size() * memory_bytes_of_one_;
  }
  StoreStats stats() const override {
    MutexLock lock(&mutex_);
    return {.partitions = partitions_.size(),
            .disk_bytes = BytesNow(),
            .other_version_bytes = other_version_bytes_};
  }

 private:
  bool Aborts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (aborts_ == 0) return false;
    --aborts_;
    return true;
  }
  uint64_t BytesNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    uint64_t bytes = 0;
    for (const auto& [ref, rows] : partitions_) {
      bytes += kFileBytes + rows.size();
    }
    return bytes;
  }
  absl::Status CheckReadable(const PartitionRef& ref) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!read_fault_.ok()) return read_fault_;
    if (!partitions_.contains(ref)) {
      return WithDamagedPartition(absl::NotFoundError("no such file"), ref);
    }
    if (!damaged_.contains(ref)) return absl::OkStatus();
    return WithDamagedPartition(absl::DataLossError("page 1 is damaged"), ref);
  }
  absl::Status ReadRows(const RowFetch& fetch) {
    MutexLock lock(&mutex_);
    const uint64_t partition_rows = manifest_.partition_rows();
    for (const uint32_t i : fetch.wanted) {
      const uint64_t row = fetch.row_ids[i];
      const PartitionRef ref{
          manifest_.layers()[fetch.layer_index].layer_id,
          PartitionId{static_cast<uint32_t>(row / partition_rows)}};
      const absl::Status status = CheckReadable(ref);
      if (!status.ok()) return status;
      std::memcpy(
          fetch.out.data() + i * row_bytes_,
          partitions_.at(ref).data() + row % partition_rows * row_bytes_,
          row_bytes_);
    }
    fetched_rows_ += fetch.wanted.size();
    return absl::OkStatus();
  }

  const size_t row_bytes_;
  const Manifest& manifest_;
  mutable Mutex mutex_;
  std::map<PartitionRef, std::string> partitions_ ABSL_GUARDED_BY(mutex_);
  std::set<PartitionRef> damaged_ ABSL_GUARDED_BY(mutex_);
  absl::Status put_fault_ ABSL_GUARDED_BY(mutex_);
  absl::Status read_fault_ ABSL_GUARDED_BY(mutex_);
  absl::Status remove_fault_ ABSL_GUARDED_BY(mutex_);
  std::function<void(const PartitionRef&)> on_remove_ ABSL_GUARDED_BY(mutex_);
  std::function<void(const PartitionRef&)> on_put_ ABSL_GUARDED_BY(mutex_);
  uint64_t other_version_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t capacity_ ABSL_GUARDED_BY(mutex_) = SIZE_MAX;
  uint64_t memory_bytes_of_one_ ABSL_GUARDED_BY(mutex_) = 0;
  int aborts_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t puts_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t fetched_rows_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t reads_ ABSL_GUARDED_BY(mutex_) = 0;
  ThreadPool threads_{{.thread_count = 2}};  // last: it uses the others
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_FAKE_LOCAL_STORE_H_
