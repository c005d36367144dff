#include "engram_client/ctl/import_partitions.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/progress.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "table_server/loading/local_copy.h"
#include "table_server/loading/verified_sources.h"

namespace engram::ctl {
namespace {

std::string Sized(uint64_t bytes) {
  return absl::StrCat(FormatBytes(bytes), " (", bytes, " bytes)");
}

class Import {
 public:
  Import(const Manifest& manifest, PartitionSource& source, LocalStore& store)
      : store_(store), copies_(store), sources_(manifest, {&source}) {}

  absl::Status Do(const PartitionRef& ref, absl::Span<std::byte> packed,
                  OnBytes on_bytes) {
    const bool was_there = store_.Has(ref);
    if (was_there) {
      ENGRAM_ASSIGN_OR_RETURN(const bool sound, IsSound(ref, packed, on_bytes));
      if (sound) return absl::OkStatus();
    }
    ENGRAM_RETURN_IF_ERROR(sources_.Fill(ref, packed, [&](size_t bytes) {
      return on_bytes(was_there ? 0 : bytes);
    }));
    ENGRAM_RETURN_IF_ERROR(
        Annotate(store_.Put(ref, packed),
                 absl::StrCat(NameOf(ref), " to ", store_.description())));
    MutexLock lock(&mutex_);
    ++result_.imported;
    result_.imported_bytes += packed.size();
    if (was_there) ++result_.replaced;
    return absl::OkStatus();
  }

  ImportResult result() const {
    MutexLock lock(&mutex_);
    return result_;
  }

 private:
  // If it is damaged, nothing of it is left; what cannot be read stays until it
  // is replaced.
  absl::StatusOr<bool> IsSound(const PartitionRef& ref,
                               absl::Span<std::byte> packed, OnBytes on_bytes) {
    const absl::Status status =
        sources_.FillFrom(copies_, ref, packed, on_bytes);
    if (status.ok()) return true;
    if (absl::IsCancelled(status)) return status;
    if (absl::IsDataLoss(status) || absl::IsFailedPrecondition(status)) {
      ENGRAM_RETURN_IF_ERROR(store_.Remove(ref));
    }
    return false;
  }

  LocalStore& store_;
  LocalCopy copies_;
  VerifiedSources sources_;
  mutable Mutex mutex_;
  ImportResult result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::vector<PartitionRef> MissingIn(const LocalStore& store,
                                    absl::Span<const PartitionRef> wanted) {
  std::vector<PartitionRef> missing;
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(missing),
               [&](const PartitionRef& ref) { return !store.Has(ref); });
  return missing;
}

absl::Status CheckRoom(const LocalStore& store,
                       absl::Span<const PartitionRef> missing,
                       uint64_t max_store_bytes, uint64_t free_bytes) {
  uint64_t bytes = 0;
  for (const PartitionRef& ref : missing) bytes += store.DiskBytesOf(ref);
  const std::string needed =
      absl::StrCat("too little room for ", store.description(), ": ",
                   missing.size(), " partitions take ", Sized(bytes));
  const StoreStats stats = store.stats();
  const uint64_t taken = stats.disk_bytes + stats.other_version_bytes;
  if (max_store_bytes > 0 && bytes + taken > max_store_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        needed, ", with ", Sized(stats.disk_bytes), " that it has and ",
        Sized(stats.other_version_bytes), " of other table versions ",
        Sized(bytes + taken), "; the limit is ", Sized(max_store_bytes)));
  }
  if (bytes > free_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(needed, ", the disk has ", Sized(free_bytes), " free"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ImportResult> ImportPartitions(
    const Manifest& manifest, PartitionSource& source, LocalStore& store,
    absl::Span<const PartitionRef> refs, const PartitionRunOptions& options) {
  Import import(manifest, source, store);
  ENGRAM_ASSIGN_OR_RETURN(
      const PartitionRunResult looked_at,
      RunOverPartitions(
          manifest, refs,
          [&](const PartitionRef& ref, absl::Span<std::byte> packed,
              OnBytes on_bytes) { return import.Do(ref, packed, on_bytes); },
          options));
  ImportResult result = import.result();
  result.looked_at = looked_at;
  return result;
}

}  // namespace engram::ctl
