#include "table_server/loading/direct_column.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

constexpr uint64_t kPage = kDirectAlignment;

uint64_t RoundDown(uint64_t value) { return value / kPage * kPage; }
uint64_t RoundUp(uint64_t value) { return RoundDown(value + kPage - 1); }

uint64_t OffsetOf(const TensorView& tensor) {
  return static_cast<uint64_t>(tensor.bytes.data() -
                               tensor.file->bytes().data());
}

}  // namespace

std::unique_ptr<DirectColumn> DirectColumn::Open(const TensorView& tensor,
                                                 StoreFiles& files) {
  if (!ReadsDirectly(tensor.file->path())) return nullptr;
  absl::StatusOr<std::unique_ptr<StoreFile>> file =
      files.Open(tensor.file->path());
  if (!file.ok()) return nullptr;
  return std::unique_ptr<DirectColumn>(
      new DirectColumn(tensor, *std::move(file)));
}

DirectColumn::DirectColumn(const TensorView& tensor,
                           std::unique_ptr<StoreFile> file)
    : tensor_(tensor), offset_(OffsetOf(tensor)), file_(std::move(file)) {}

// By samples: the kernel reads megabytes ahead of whatever is touched, so that
// a look at one place says little. At other places each time, as a look brings
// its page in. mincore() would call everything cached that is another user's.
bool DirectColumn::IsCached(const TensorView& tensor) {
  constexpr uint64_t kSamples = 256;
  const uint64_t size = tensor.bytes.size();
  const uint64_t step = std::max(kPage, size / kSamples);
  const int fd = open(tensor.file->path().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);  // nothing is read ahead
  uint64_t cached = 0;
  uint64_t looked_at = 0;
  for (uint64_t at = std::random_device{}() % step; at < size; at += step) {
    std::byte byte{};
    const iovec one = {&byte, 1};
    const auto offset = static_cast<off_t>(OffsetOf(tensor) + at);
    if (preadv2(fd, &one, 1, offset, RWF_NOWAIT) == 1) ++cached;
    ++looked_at;
  }
  close(fd);
  return cached > looked_at / 2;
}

absl::StatusOr<absl::Span<const std::byte>> DirectColumn::Read(
    uint64_t at, size_t size_bytes, absl::Span<std::byte> buffer) const {
  const uint64_t begin = RoundDown(offset_ + at);
  const uint64_t end = offset_ + at + size_bytes;
  const size_t aligned_bytes = RoundUp(end) - begin;
  ENGRAM_CHECK(at + size_bytes <= tensor_.bytes.size() &&
               aligned_bytes <= buffer.size());
  uint64_t have = begin;  // the last page may be beyond the end of the file
  while (have < end) {
    ENGRAM_ASSIGN_OR_RETURN(
        const size_t got,
        file_->ReadSome(
            have, buffer.subspan(have - begin, begin + aligned_bytes - have)));
    // What came in between two pages is asked for again.
    have = have + got >= end ? end : RoundDown(have + got);
    if (have < end && got < kPage) {
      return absl::DataLossError(absl::StrCat(tensor_.file->path(), " ends at ",
                                              have + got, ", before ",
                                              tensor_.name, " does"));
    }
  }
  return absl::Span<const std::byte>(buffer).subspan(offset_ + at - begin,
                                                     size_bytes);
}

}  // namespace engram
