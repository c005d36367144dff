#ifndef ENGRAM_TABLE_SERVER_STORE_ROCKS_FILES_H_
#define ENGRAM_TABLE_SERVER_STORE_ROCKS_FILES_H_

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace engram {

// The file system as RocksDB sees it, counting the files that it has open for
// reads: RocksDB does not tell. Thread safety: all methods may be called
// concurrently.
class CountingFiles final : public rocksdb::FileSystemWrapper {
 public:
  explicit CountingFiles(const std::shared_ptr<rocksdb::FileSystem>& files)
      : FileSystemWrapper(files) {}

  const char* Name() const override { return "EngramCountingFiles"; }

  rocksdb::IOStatus NewRandomAccessFile(
      const std::string& path, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
      rocksdb::IODebugContext* context) override {
    std::unique_ptr<rocksdb::FSRandomAccessFile> file;
    rocksdb::IOStatus status =
        target()->NewRandomAccessFile(path, options, &file, context);
    if (status.ok()) {
      *result = std::make_unique<Counted>(std::move(file), open_);
    }
    return status;
  }

  uint64_t open() const { return open_->load(std::memory_order_relaxed); }

 private:
  using Count = std::shared_ptr<std::atomic<uint64_t>>;

  class Counted final : public rocksdb::FSRandomAccessFileOwnerWrapper {
   public:
    Counted(std::unique_ptr<rocksdb::FSRandomAccessFile> file, Count open)
        : FSRandomAccessFileOwnerWrapper(std::move(file)),
          open_(std::move(open)) {
      open_->fetch_add(1, std::memory_order_relaxed);
    }
    ~Counted() override { open_->fetch_sub(1, std::memory_order_relaxed); }

   private:
    const Count open_;
  };

  const Count open_ = std::make_shared<std::atomic<uint64_t>>(0);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_ROCKS_FILES_H_
