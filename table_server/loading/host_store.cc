#include "table_server/loading/host_store.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"

namespace engram {

HostStore::HostStore(const Manifest& manifest, HostTier& tier, Options options)
    : manifest_(manifest),
      tier_(tier),
      options_(std::move(options)),
      sources_(manifest, options_.sources) {}

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
  absl::Status status = sources_.Fill(ref, packed, on_bytes);
  if (!status.ok()) tier_.Free(layer_index, ref.partition);
  return status;
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

absl::StatusOr<AvailableMemory> HostStore::Available() const {
  if (options_.memory_limit_bytes == 0) return ReadAvailableMemory("");
  const uint64_t used = tier_.memory_bytes();
  return AvailableMemory{
      options_.memory_limit_bytes - std::min(options_.memory_limit_bytes, used),
      "its option"};
}

}  // namespace engram
