#include "table_server/tier/slot_memory.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/numa.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

// From here on whole pages waste less than 2 %, and no page is shared.
constexpr size_t kManyPages = 64;
// Of addresses: more than any CPU has, less than would overflow.
constexpr size_t kMaxBytes = SIZE_MAX / 4;

size_t WholePages(size_t bytes) {
  const size_t page = PageBuffer::PageBytes();
  return (bytes + page - 1) / page * page;
}

// Memory of one node is slower, not wrong.
void Interleave(absl::Span<std::byte> memory,
                absl::Span<const int> numa_nodes) {
  if (numa_nodes.size() < 2) return;
  const absl::Status status = InterleaveOverNodes(memory, numa_nodes);
  if (status.ok()) return;
  spdlog::warn("rows may lie on one NUMA node: {}",
               std::string(status.message()));
}

}  // namespace

size_t SlotMemory::SlotBytes(size_t bytes) {
  const bool many = bytes >= kManyPages * PageBuffer::PageBytes();
  return many ? WholePages(bytes) : bytes;
}

absl::StatusOr<std::unique_ptr<SlotMemory>> SlotMemory::Create(
    size_t slot_bytes, size_t slot_count, absl::Span<const int> numa_nodes) {
  if (slot_bytes == 0 || slot_bytes > kMaxBytes ||
      slot_count > kMaxBytes / SlotBytes(slot_bytes)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot map ", slot_count, " slots of ", slot_bytes, " bytes"));
  }
  ENGRAM_ASSIGN_OR_RETURN(
      PageBuffer buffer,
      PageBuffer::Reserve(slot_count * SlotBytes(slot_bytes)));
  Interleave(buffer.reserved(), numa_nodes);
  return std::unique_ptr<SlotMemory>(
      new SlotMemory(std::move(buffer), SlotBytes(slot_bytes), slot_count));
}

SlotMemory::SlotMemory(PageBuffer buffer, size_t slot_bytes, size_t slot_count)
    : slot_bytes_(slot_bytes),
      buffer_(std::move(buffer)),
      taken_(slot_count, false) {}

absl::StatusOr<std::byte*> SlotMemory::Take() {
  MutexLock lock(&mutex_);
  const auto free = std::find(taken_.begin(), taken_.end(), false);
  if (free == taken_.end()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "all ", taken_.size(), " slots of ", slot_bytes_, " bytes are taken"));
  }
  const auto slot = static_cast<size_t>(free - taken_.begin());
  const size_t end = WholePages((slot + 1) * slot_bytes_);
  if (end > buffer_.bytes().size()) ENGRAM_RETURN_IF_ERROR(buffer_.Grow(end));
  *free = true;
  return buffer_.bytes().data() + slot * slot_bytes_;
}

void SlotMemory::Give(std::byte* slot) {
  MutexLock lock(&mutex_);
  const auto offset = static_cast<size_t>(slot - buffer_.bytes().data());
  const size_t index = offset / slot_bytes_;
  ENGRAM_CHECK(offset % slot_bytes_ == 0 && index < taken_.size() &&
               taken_[index]);
  taken_[index] = false;
  const absl::Status status = buffer_.Discard(PagesOfOnly(index));
  if (!status.ok()) {
    spdlog::warn("rows that are no longer held: {}",
                 std::string(status.message()));
  }
}

absl::Span<std::byte> SlotMemory::PagesOfOnly(size_t slot) {
  const size_t page = PageBuffer::PageBytes();
  size_t begin = slot * slot_bytes_ / page * page;
  size_t end = WholePages((slot + 1) * slot_bytes_);
  if (AnyTaken(begin / slot_bytes_, slot)) begin += page;
  if (AnyTaken(slot + 1, (end - 1) / slot_bytes_ + 1)) end -= page;
  if (begin >= end) return {};
  return buffer_.bytes().subspan(begin, end - begin);
}

bool SlotMemory::AnyTaken(size_t first, size_t end) const {
  end = std::min(end, taken_.size());
  for (size_t slot = first; slot < end; ++slot) {
    if (taken_[slot]) return true;
  }
  return false;
}

}  // namespace engram
