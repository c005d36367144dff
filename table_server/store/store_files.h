#ifndef ENGRAM_TABLE_SERVER_STORE_STORE_FILES_H_
#define ENGRAM_TABLE_SERVER_STORE_STORE_FILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace engram {

// Of offsets, lengths and memory of reads and writes that pass by the kernel's
// page cache.
inline constexpr size_t kDirectAlignment = 4096;

// An open file. Thread safety: all methods may be called concurrently.
//
// REQUIRES: offsets, lengths and memory are aligned to kDirectAlignment.
class StoreFile {
 public:
  virtual ~StoreFile() = default;

  // How many bytes came, which may be fewer than there is room for; 0 only
  // behind the end.
  virtual absl::StatusOr<size_t> ReadSome(uint64_t offset,
                                          absl::Span<std::byte> out) const = 0;
  // How many were written, at least one.
  virtual absl::StatusOr<size_t> WriteSome(
      uint64_t offset, absl::Span<const std::byte> bytes) = 0;
  // What was written stays, whenever the machine ends.
  virtual absl::Status Sync() = 0;
  virtual absl::StatusOr<uint64_t> SizeBytes() const = 0;
};

// The little of a file system that a store needs, so that tests can be a bad
// one (faulty_files.h).
//
// Errors name the path and what the system says: RESOURCE_EXHAUSTED: no room;
// NOT_FOUND, PERMISSION_DENIED; UNAVAILABLE for everything else, of which
// IsMediaError tells the medium's from those of the machine.
// Thread safety: all methods may be called concurrently.
class StoreFiles {
 public:
  virtual ~StoreFiles() = default;

  // For writing, `size_bytes` in the end. Replaces what is there.
  virtual absl::StatusOr<std::unique_ptr<StoreFile>> Create(
      const std::string& path, uint64_t size_bytes) = 0;
  // For reading.
  virtual absl::StatusOr<std::unique_ptr<StoreFile>> Open(
      const std::string& path) = 0;
  virtual absl::Status Rename(const std::string& from,
                              const std::string& to) = 0;
  // Of what is not there: OK.
  virtual absl::Status Remove(const std::string& path) = 0;
  // Of what is there: OK.
  virtual absl::Status MakeDir(const std::string& path) = 0;
  // Which names are in the directory stays, whenever the machine ends.
  virtual absl::Status SyncDir(const std::string& path) = 0;
  // Names, in no order, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> List(
      const std::string& path) = 0;

  // Of the machine; never destroyed. Direct, where the file system can.
  static StoreFiles& Disk();
};

// What a StoreFiles says of an errno.
absl::Status StoreFileError(int error, absl::string_view what,
                            absl::string_view path);
// EIO: the disk could not do it, as with a bad sector.
absl::Status AsMediaError(absl::Status status);
bool IsMediaError(const absl::Status& status);

// Whether reads and writes in `dir` may pass by the page cache; tried with a
// file of its own.
bool TakesDirectIo(const std::string& dir);
// The same of reads of a file that is there; nothing is written.
bool ReadsDirectly(const std::string& path);

// DATA_LOSS: the file ends before `out` does.
absl::Status ReadFully(const StoreFile& file, absl::string_view path,
                       uint64_t offset, absl::Span<std::byte> out);
absl::Status WriteFully(StoreFile& file, absl::string_view path,
                        uint64_t offset, absl::Span<const std::byte> bytes);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_STORE_FILES_H_
