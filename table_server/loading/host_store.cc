#include "table_server/loading/host_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/progress.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

std::string ToHex(const PartitionDigest& digest) {
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(digest.data()), digest.size()));
}

std::string NameOf(const PartitionRef& ref) {
  return absl::StrCat("layer ", ToInt(ref.layer), " partition ",
                      ToInt(ref.partition));
}

// What is told of a partition that no source gave: that bytes are there and
// wrong says more than that there are none.
int Severity(const absl::Status& status) {
  if (status.ok()) return -1;
  if (absl::IsCancelled(status)) return 4;
  if (absl::IsFailedPrecondition(status)) return 3;
  if (absl::IsDataLoss(status)) return 2;
  return absl::IsNotFound(status) ? 0 : 1;
}

// Counts what no sound checkpoint has in rows that have just been filled, while
// a core's cache still has them.
class DefectCounter {
 public:
  DefectCounter(const RowFormat& format, absl::Span<const std::byte> packed)
      : format_(format), packed_(packed) {}

  void Filled(size_t bytes) {
    filled_bytes_ += bytes;
    const size_t whole = filled_bytes_ - filled_bytes_ % format_.row_bytes();
    const RowDefects found = CountDefects(
        format_, packed_.subspan(counted_bytes_, whole - counted_bytes_));
    counted_bytes_ = whole;
    found_.nan_codes += found.nan_codes;
    found_.nan_scales += found.nan_scales;
  }

  const RowDefects& found() const { return found_; }

 private:
  const RowFormat& format_;
  const absl::Span<const std::byte> packed_;
  size_t filled_bytes_ = 0;
  size_t counted_bytes_ = 0;
  RowDefects found_;
};

}  // namespace

HostStore::HostStore(const Manifest& manifest, HostTier& tier, Options options)
    : manifest_(manifest),
      tier_(tier),
      options_(std::move(options)),
      defects_(manifest.layers().size()) {}

absl::Status HostStore::Load(
    const PartitionRef& ref,
    absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) {
  ENGRAM_ASSIGN_OR_RETURN(const size_t layer_index,
                          manifest_.IndexOf(ref.layer));
  ENGRAM_ASSIGN_OR_RETURN(const AvailableMemory available, Available());
  const LayerMemory needed{ref.layer, BytesToLoad(ref), 1};
  ENGRAM_RETURN_IF_ERROR(CheckMemory(absl::MakeConstSpan(&needed, 1),
                                     options_.max_bytes_in_flight, available));
  ENGRAM_ASSIGN_OR_RETURN(const absl::Span<std::byte> packed,
                          tier_.Allocate(layer_index, ref.partition));
  absl::Status status = Fill(ref, layer_index, packed, on_bytes);
  if (!status.ok()) tier_.Free(layer_index, ref.partition);
  return status;
}

absl::Status HostStore::Fill(
    const PartitionRef& ref, size_t layer_index, absl::Span<std::byte> packed,
    absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) {
  absl::Status worst;
  for (PartitionSource* const source : options_.sources) {
    DefectCounter counter(manifest_.row_format(), packed);
    absl::Status status = source->Read(ref, packed, [&](size_t bytes) {
      counter.Filled(bytes);
      return on_bytes(bytes);
    });
    if (status.ok()) status = Verify(ref, layer_index, packed);
    if (status.ok()) {
      MutexLock lock(&mutex_);
      defects_[layer_index].nan_codes += counter.found().nan_codes;
      defects_[layer_index].nan_scales += counter.found().nan_scales;
      return absl::OkStatus();
    }
    status = Annotate(status, NameOf(ref) + " from " + source->description());
    const bool cancelled = absl::IsCancelled(status);
    if (Severity(status) > Severity(worst)) worst = std::move(status);
    if (cancelled) break;
  }
  if (!worst.ok()) return worst;
  return absl::NotFoundError(NameOf(ref) + ": nothing to load it from");
}

absl::Status HostStore::Verify(const PartitionRef& ref, size_t layer_index,
                               absl::Span<const std::byte> packed) const {
  const PartitionDigest found = DigestOf(packed);
  const PartitionDigest& wanted =
      manifest_.layers()[layer_index].digests[ToInt(ref.partition)];
  if (found == wanted) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "manifest of another checkpoint or damaged file: the digest is ",
      ToHex(found), ", the manifest says ", ToHex(wanted)));
}

void HostStore::Free(const PartitionRef& ref) {
  tier_.Free(*manifest_.IndexOf(ref.layer), ref.partition);
}

absl::Status HostStore::CheckFits(absl::Span<const PartitionRef> wanted) {
  ENGRAM_ASSIGN_OR_RETURN(AvailableMemory available, Available());
  available.bytes += tier_.memory_bytes();
  std::vector<LayerMemory> needed;
  for (size_t i = 0; i < manifest_.layers().size(); ++i) {
    const LayerId layer = manifest_.layers()[i].layer_id;
    const auto count = std::count_if(
        wanted.begin(), wanted.end(),
        [&](const PartitionRef& ref) { return ref.layer == layer; });
    needed.push_back({layer, HostTier::BytesNeeded(manifest_, i, wanted),
                      static_cast<uint64_t>(count)});
  }
  return CheckMemory(needed, options_.max_bytes_in_flight, available);
}

uint64_t HostStore::BytesToLoad(const PartitionRef& ref) const {
  return manifest_.RowsIn(*manifest_.IndexOf(ref.layer), ref.partition) *
         manifest_.row_format().row_bytes();
}

std::vector<RowDefects> HostStore::defects() const {
  MutexLock lock(&mutex_);
  return defects_;
}

absl::StatusOr<AvailableMemory> HostStore::Available() const {
  if (options_.memory_limit_bytes == 0) return ReadAvailableMemory("");
  const uint64_t used = tier_.memory_bytes();
  return AvailableMemory{
      options_.memory_limit_bytes - std::min(options_.memory_limit_bytes, used),
      "its option"};
}

}  // namespace engram
