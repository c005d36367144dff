// The easy way: all rows in one file that is mapped, and the kernel keeps what
// it has memory for.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "tests/bench/cold_contestant.h"
#include "tests/bench/fan_out.h"

namespace engram::bench {
namespace {

constexpr size_t kWriteThreads = 4;

std::string FileIn(const std::string& dir) { return dir + "/rows"; }

absl::Status SystemError(const std::string& path) {
  return absl::ErrnoToStatus(errno, path);
}

absl::Status WriteAt(int fd, uint64_t at, absl::Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote =
        pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (wrote <= 0) return absl::ErrnoToStatus(errno, "write");
    at += static_cast<uint64_t>(wrote);
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return absl::OkStatus();
}

absl::Status Prepare(const SyntheticTable& table, const std::string& dir) {
  const std::string path = FileIn(dir);
  const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return SystemError(path);
  absl::Status status =
      table.ForPartitions(kWriteThreads, [&](uint32_t partition) {
        thread_local std::vector<std::byte> packed(table.partition_bytes());
        table.Fill(partition, absl::MakeSpan(packed));
        return WriteAt(fd, partition * packed.size(), packed);
      });
  if (status.ok() && fdatasync(fd) != 0) status = SystemError(path);
  close(fd);
  return status;
}

class Mmap final : public ColdContestant {
 public:
  static absl::StatusOr<std::unique_ptr<ColdContestant>> Open(
      const SyntheticTable& table, const ColdOptions& options) {
    const std::string path = FileIn(options.dir);
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return SystemError(path);
    void* const at = mmap(nullptr, table.bytes(), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED) return SystemError(path);
    // Otherwise a fault reads megabytes around the row.
    if (madvise(at, table.bytes(), MADV_RANDOM) != 0) return SystemError(path);
    return std::unique_ptr<ColdContestant>(
        new Mmap({static_cast<const std::byte*>(at), table.bytes()},
                 table.row_bytes(), options.threads));
  }
  ~Mmap() override {
    munmap(const_cast<std::byte*>(rows_.data()), rows_.size());
  }

  void SetFanOut(size_t parts) override { fan_out_.SetParts(parts); }

  absl::Status Gather(absl::Span<const RowId> row_ids,
                      absl::Span<std::byte> out) override {
    return fan_out_.Run(
        row_ids, out,
        [this](absl::Span<const RowId> ids, absl::Span<std::byte> slots) {
          for (size_t i = 0; i < ids.size(); ++i) {
            std::memcpy(slots.data() + i * row_bytes_,
                        rows_.data() + ids[i] * row_bytes_, row_bytes_);
          }
          return absl::OkStatus();
        });
  }

 private:
  Mmap(absl::Span<const std::byte> rows, size_t row_bytes, size_t threads)
      : rows_(rows), row_bytes_(row_bytes), fan_out_(threads) {}

  const absl::Span<const std::byte> rows_;
  const size_t row_bytes_;
  FanOut fan_out_;
};

}  // namespace

ColdKind ColdMmap() { return {"mmap", Prepare, Mmap::Open}; }

}  // namespace engram::bench
