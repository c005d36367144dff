#include "table_server/loading/tiered_store.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/page_buffer.h"
#include "core/base/progress.h"
#include "core/base/status_macros.h"
#include "table_server/tier/slot_memory.h"

namespace engram {
namespace {

// Of the largest partition of a table.
uint64_t MostPartitionBytes(const Manifest& manifest) {
  uint64_t most_rows = 0;
  for (const ManifestLayer& layer : manifest.layers()) {
    most_rows = std::max(most_rows,
                         std::min(layer.row_count, manifest.partition_rows()));
  }
  return most_rows * manifest.row_format().row_bytes();
}

std::vector<OtherMemory> BesideRows(const Manifest& manifest,
                                    const TieredStore::Options& options,
                                    uint64_t index_bytes) {
  std::vector<OtherMemory> memory = {
      {"the row cache", options.cache_bytes},
      {absl::StrCat(options.load_threads,
                    " partitions on their way to the local store"),
       options.load_threads * MostPartitionBytes(manifest)}};
  if (index_bytes > 0) {
    memory.push_back({"the index of the local store", index_bytes});
  }
  return memory;
}

// At most, whatever the server comes to own.
uint64_t MostIndexBytes(const Manifest& manifest, const LocalStore& local) {
  std::vector<PartitionRef> all;
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    for (uint32_t p = 0; p < manifest.partition_count(i); ++p) {
      all.push_back({manifest.layers()[i].layer_id, PartitionId{p}});
    }
  }
  return local.MemoryBytesOf(all);
}

}  // namespace

TieredStore::TieredStore(const Manifest& manifest, HostTier& tier,
                         LocalStore& local, DamagedCopies& damaged,
                         Options options)
    : manifest_(manifest),
      tier_(tier),
      local_(local),
      options_(std::move(options)),
      max_host_bytes_(options_.max_host_bytes.value_or(MemoryForRows(
          options_.max_bytes_in_flight,
          BesideRows(manifest, options_, MostIndexBytes(manifest, local)),
          options_.available))),
      sources_(manifest, options_.sources),
      copies_(local, damaged, options_.copies) {}

absl::Status TieredStore::Load(
    const PartitionRef& ref,
    absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) {
  ENGRAM_ASSIGN_OR_RETURN(const size_t layer_index,
                          manifest_.IndexOf(ref.layer));
  if (!copies_.BeginLoad(ref)) {
    return absl::UnavailableError(
        NameOf(ref) + " is being put into the local store, or removed from it");
  }
  absl::Status status = LoadAnywhere(ref, layer_index, on_bytes);
  if (!status.ok()) copies_.LoadFailed(ref);
  return status;
}

absl::Status TieredStore::LoadAnywhere(const PartitionRef& ref,
                                       size_t layer_index, OnBytes on_bytes) {
  const uint64_t slot_bytes = SlotMemory::SlotBytes(BytesToLoad(ref));
  if (!TakeHost(slot_bytes)) return LoadCold(ref, on_bytes);
  const absl::StatusOr<absl::Span<std::byte>> packed =
      tier_.Allocate(layer_index, ref.partition);
  if (!packed.ok()) {
    GiveHost(slot_bytes);
    spdlog::warn("{} stays cold: {}", NameOf(ref),
                 std::string(packed.status().message()));
    return LoadCold(ref, on_bytes);
  }
  absl::Status status = LoadIntoHost(ref, *packed, on_bytes);
  if (!status.ok()) {
    tier_.Free(layer_index, ref.partition);
    GiveHost(slot_bytes);
  }
  return status;
}

absl::Status TieredStore::LoadIntoHost(const PartitionRef& ref,
                                       absl::Span<std::byte> packed,
                                       OnBytes on_bytes) {
  ENGRAM_ASSIGN_OR_RETURN(const bool from_copy,
                          FillFromCopy(ref, packed, on_bytes));
  absl::Status kept;
  if (!from_copy) {
    ENGRAM_RETURN_IF_ERROR(sources_.Fill(ref, packed, on_bytes));
    kept = Keep(ref, packed, StoredCopies::Place::kHost);
  }
  if (!kept.ok()) {
    spdlog::warn("{} is in memory only: {}", NameOf(ref),
                 std::string(kept.message()));
  }
  copies_.Loaded(ref, StoredCopies::Place::kHost, kept.ok());
  return absl::OkStatus();
}

absl::Status TieredStore::LoadCold(const PartitionRef& ref, OnBytes on_bytes) {
  const uint64_t bytes = BytesToLoad(ref);
  if (copies_.HasSound(ref)) {
    ENGRAM_RETURN_IF_ERROR(on_bytes(0));
  } else {
    // Not of malloc, which would keep it when all partitions are loaded.
    ENGRAM_ASSIGN_OR_RETURN(PageBuffer buffer, PageBuffer::Allocate(bytes));
    const absl::Span<std::byte> packed = buffer.bytes();
    ENGRAM_RETURN_IF_ERROR(sources_.Fill(ref, packed, on_bytes));
    ENGRAM_RETURN_IF_ERROR(Keep(ref, packed, StoredCopies::Place::kCold));
  }
  copies_.Loaded(ref, StoredCopies::Place::kCold, /*kept=*/true);
  MutexLock lock(&mutex_);
  ++cold_partitions_;
  cold_bytes_ += bytes;
  return absl::OkStatus();
}

// False: there is none that can be read now, and the sources are to be asked.
absl::StatusOr<bool> TieredStore::FillFromCopy(const PartitionRef& ref,
                                               absl::Span<std::byte> packed,
                                               OnBytes on_bytes) {
  if (!copies_.HasSound(ref)) return false;
  const absl::Status status = sources_.FillFrom(copy_, ref, packed, on_bytes);
  if (status.ok()) return true;
  if (absl::IsCancelled(status)) return status;
  if (absl::IsDataLoss(status) || absl::IsFailedPrecondition(status)) {
    copies_.DropDamaged(ref, status);
  } else {
    spdlog::warn("not loaded from the local store: {}",
                 std::string(status.message()));
  }
  return false;
}

// A copy that is there, but could not be read, is as good as before if it
// cannot be replaced.
absl::Status TieredStore::Keep(const PartitionRef& ref,
                               absl::Span<const std::byte> packed,
                               StoredCopies::Place place) {
  absl::Status status = copies_.Keep(ref, packed, place);
  return copies_.HasSound(ref) ? absl::OkStatus() : status;
}

void TieredStore::Tend() {
  const std::optional<PartitionRef> ref = copies_.TakeUnkept();
  if (!ref.has_value()) return;
  const absl::Status kept = Keep(
      *ref,
      tier_.MutablePartition(*manifest_.IndexOf(ref->layer), ref->partition),
      StoredCopies::Place::kHost);
  if (kept.ok()) {
    spdlog::info("{} is in the local store too", NameOf(*ref));
  } else {
    spdlog::warn("{} is still in memory only: {}", NameOf(*ref),
                 std::string(kept.message()));
  }
  if (copies_.EndRetry(*ref, kept.ok())) GiveBack(*ref);
}

void TieredStore::Free(const PartitionRef& ref) {
  if (copies_.BeginFree(ref)) GiveBack(ref);
}

void TieredStore::GiveBack(const PartitionRef& ref) {
  const size_t layer_index = *manifest_.IndexOf(ref.layer);
  const uint64_t bytes = BytesToLoad(ref);
  if (tier_.IsAllocated(layer_index, ref.partition)) {
    tier_.Free(layer_index, ref.partition);
    GiveHost(SlotMemory::SlotBytes(bytes));
  } else {
    MutexLock lock(&mutex_);
    --cold_partitions_;
    cold_bytes_ -= bytes;
  }
  copies_.Freed(ref);
}

absl::Status TieredStore::CheckFits(absl::Span<const PartitionRef> wanted) {
  uint64_t slot_bytes = 0;
  for (const PartitionRef& ref : wanted) {
    slot_bytes += SlotMemory::SlotBytes(BytesToLoad(ref));
  }
  // With what nobody wants and has not made room yet.
  std::vector<PartitionRef> stored = local_.Partitions();
  stored.insert(stored.end(), wanted.begin(), wanted.end());
  std::sort(stored.begin(), stored.end());
  stored.erase(std::unique(stored.begin(), stored.end()), stored.end());
  std::vector<OtherMemory> memory =
      BesideRows(manifest_, options_, local_.MemoryBytesOf(stored));
  memory.push_back(
      {"rows kept whole in memory", std::min(slot_bytes, max_host_bytes_)});
  ENGRAM_RETURN_IF_ERROR(CheckMemory({}, options_.max_bytes_in_flight,
                                     options_.available, memory));
  ENGRAM_RETURN_IF_ERROR(CheckStoreFits(wanted));
  copies_.SetWanted(wanted);
  return absl::OkStatus();
}

absl::Status TieredStore::CheckStoreFits(
    absl::Span<const PartitionRef> wanted) const {
  if (options_.max_store_bytes == 0) return absl::OkStatus();
  uint64_t bytes = 0;
  for (const PartitionRef& ref : wanted) bytes += local_.DiskBytesOf(ref);
  const uint64_t others = local_.stats().other_version_bytes;
  if (bytes + others <= options_.max_store_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "too little room in ", local_.description(), ": ", FormatBytes(bytes),
      " (", bytes, " bytes on disk) for ", wanted.size(),
      " partitions needed and ", FormatBytes(others), " (", others,
      " bytes) taken by other table versions, ",
      FormatBytes(options_.max_store_bytes), " (", options_.max_store_bytes,
      " bytes) allowed"));
}

uint64_t TieredStore::BytesToLoad(const PartitionRef& ref) const {
  return manifest_.RowsIn(*manifest_.IndexOf(ref.layer), ref.partition) *
         manifest_.row_format().row_bytes();
}

TieredStore::Stats TieredStore::stats() const {
  Stats stats{.unkept_partitions = copies_.unkept(),
              .damaged_copies = copies_.damaged_found()};
  MutexLock lock(&mutex_);
  stats.cold_partitions = cold_partitions_;
  stats.cold_bytes = cold_bytes_;
  stats.host_bytes = host_bytes_;
  stats.max_host_bytes = max_host_bytes_;
  return stats;
}

bool TieredStore::TakeHost(uint64_t bytes) {
  MutexLock lock(&mutex_);
  if (bytes > max_host_bytes_ - host_bytes_) return false;
  host_bytes_ += bytes;
  return true;
}

void TieredStore::GiveHost(uint64_t bytes) {
  MutexLock lock(&mutex_);
  host_bytes_ -= bytes;
}

}  // namespace engram
