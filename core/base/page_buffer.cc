#include "core/base/page_buffer.h"

#include <sys/mman.h>

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

namespace engram {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

}  // namespace

absl::StatusOr<PageBuffer> PageBuffer::Allocate(size_t size_bytes) {
  if (size_bytes == 0) return PageBuffer();
  if (size_bytes > SIZE_MAX - 2 * kHugePageBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", size_bytes, " bytes"));
  }
  const size_t rounded =
      (size_bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  // One page more than needed, so that the start can be aligned: khugepaged
  // and the fault handler only use aligned huge pages.
  const size_t mapped = rounded + kHugePageBytes;
  void* base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot map ", size_bytes, " bytes: ", std::strerror(errno)));
  }
  auto address = reinterpret_cast<uintptr_t>(base);
  const uintptr_t aligned =
      (address + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  if (aligned > address) munmap(base, aligned - address);
  const uintptr_t end = address + mapped;
  if (end > aligned + rounded) {
    munmap(reinterpret_cast<void*>(aligned + rounded), end - aligned - rounded);
  }
  auto* data = reinterpret_cast<std::byte*>(aligned);
  madvise(data, rounded, MADV_HUGEPAGE);  // advice: failure costs speed only
  return PageBuffer(data, size_bytes, rounded);
}

PageBuffer::~PageBuffer() {
  if (data_ != nullptr) munmap(data_, mapped_bytes_);
}

PageBuffer::PageBuffer(PageBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}

PageBuffer& PageBuffer::operator=(PageBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  return *this;
}

size_t PageBuffer::HugeBytes() const {
  std::ifstream smaps("/proc/self/smaps");
  const auto begin = reinterpret_cast<uintptr_t>(data_);
  const uintptr_t end = begin + mapped_bytes_;
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
  return std::min<size_t>(huge_bytes, mapped_bytes_);
}

}  // namespace engram
