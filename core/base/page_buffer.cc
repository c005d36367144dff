#include "core/base/page_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

uintptr_t RoundUp(uintptr_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}

absl::Status Refused(const char* what, size_t size_bytes) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot ", what, " ", size_bytes, " bytes: ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<PageBuffer> PageBuffer::Allocate(size_t size_bytes) {
  absl::StatusOr<PageBuffer> buffer = Reserve(size_bytes);
  if (!buffer.ok()) return buffer;
  ENGRAM_RETURN_IF_ERROR(buffer->Grow(size_bytes));
  return buffer;
}

absl::StatusOr<PageBuffer> PageBuffer::Reserve(size_t max_bytes) {
  if (max_bytes == 0) return PageBuffer();
  constexpr size_t kMaxBytes = SIZE_MAX - 3 * kHugePageBytes;
  if (max_bytes > kMaxBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot map ", max_bytes, " bytes, the limit is ", kMaxBytes));
  }
  const size_t rounded = RoundUp(max_bytes, kHugePageBytes);
  // One huge page more than needed, so that the start can be aligned:
  // khugepaged and the fault handler only use aligned huge pages. And one that
  // stays unusable at the end, so that the kernel never joins two buffers into
  // one mapping, for which it tells the bytes in huge pages.
  const size_t mapped = rounded + 2 * kHugePageBytes;
  void* const base = mmap(nullptr, mapped, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return Refused("map", max_bytes);
  const auto address = reinterpret_cast<uintptr_t>(base);
  const uintptr_t aligned = RoundUp(address, kHugePageBytes);
  if (aligned > address) munmap(base, aligned - address);
  const uintptr_t end = aligned + rounded + kHugePageBytes;
  if (address + mapped > end) {
    munmap(reinterpret_cast<void*>(end), address + mapped - end);
  }
  auto* const data = reinterpret_cast<std::byte*>(aligned);
  madvise(data, rounded, MADV_HUGEPAGE);  // advice: failure costs speed only
  return PageBuffer(data, rounded);
}

PageBuffer::~PageBuffer() {
  if (data_ != nullptr) munmap(data_, reserved_bytes_ + kHugePageBytes);
}

PageBuffer::PageBuffer(PageBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      reserved_bytes_(std::exchange(other.reserved_bytes_, 0)) {}

PageBuffer& PageBuffer::operator=(PageBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(reserved_bytes_, other.reserved_bytes_);
  return *this;
}

absl::Status PageBuffer::Grow(size_t size_bytes) {
  ENGRAM_CHECK(size_bytes >= size_bytes_ && size_bytes <= reserved_bytes_);
  const size_t usable = RoundUp(size_bytes_, kHugePageBytes);
  const size_t wanted = RoundUp(size_bytes, kHugePageBytes);
  if (wanted > usable &&
      mprotect(data_ + usable, wanted - usable, PROT_READ | PROT_WRITE) != 0) {
    return Refused("use", size_bytes);
  }
  size_bytes_ = size_bytes;
  return absl::OkStatus();
}

absl::Status PageBuffer::Discard(absl::Span<std::byte> pages) {
  if (pages.empty()) return absl::OkStatus();
  ENGRAM_CHECK(pages.data() >= data_ &&
               pages.data() + pages.size() <= data_ + size_bytes_);
  if (madvise(pages.data(), pages.size(), MADV_DONTNEED) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(
      errno, absl::StrCat("cannot give back ", pages.size(), " bytes"));
}

size_t PageBuffer::PageBytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

size_t PageBuffer::HugeBytes() const {
  std::ifstream smaps("/proc/self/smaps");
  const auto begin = reinterpret_cast<uintptr_t>(data_);
  const uintptr_t end = begin + reserved_bytes_;
  bool inside = false;
  size_t huge_bytes = 0;
  for (std::string line; std::getline(smaps, line);) {
    uint64_t from = 0;
    uint64_t to = 0;
    const std::pair<std::string, std::string> range =
        absl::StrSplit(absl::string_view(line).substr(0, line.find(' ')),
                       absl::MaxSplits('-', 1));
    if (absl::SimpleHexAtoi(range.first, &from) &&
        absl::SimpleHexAtoi(range.second, &to)) {
      inside = from < end && to > begin;
      continue;
    }
    absl::string_view rest = line;
    if (!inside || !absl::ConsumePrefix(&rest, "AnonHugePages:")) continue;
    absl::ConsumeSuffix(&rest, "kB");
    uint64_t kilobytes = 0;
    if (absl::SimpleAtoi(rest, &kilobytes)) huge_bytes += kilobytes << 10;
  }
  return std::min<size_t>(huge_bytes, reserved_bytes_);
}

}  // namespace engram
