#ifndef ENGRAM_TABLE_SERVER_STORE_FAULTY_FILES_H_
#define ENGRAM_TABLE_SERVER_STORE_FAULTY_FILES_H_

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "table_server/store/store_files.h"

namespace engram {

// The disk, with faults that a test sets; for tests.
//
// It also knows what a machine that loses its power forgets: contents that were
// not synced, and names in directories that were not.
//
// Thread safety: all methods may be called concurrently.
class FaultyFiles final : public StoreFiles {
 public:
  // `scratch_dir`: on the same file system, not one of a store.
  explicit FaultyFiles(std::string scratch_dir)
      : scratch_dir_(std::move(scratch_dir)) {}

  // Reads of, and opening, paths with `part` in them, with an errno; "": of
  // none.
  void FailReadsOf(std::string part, int error = EIO) {
    MutexLock lock(&mutex_);
    failing_part_ = std::move(part);
    read_error_ = error;
  }
  // They wait until other paths are held, or none ("").
  void HoldReadsOf(std::string part) {
    MutexLock lock(&mutex_);
    held_part_ = std::move(part);
    changed_.NotifyAll();
  }
  void WaitForHeldReads(int count) {
    MutexLock lock(&mutex_);
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (held_reads_ < count) {
      ENGRAM_CHECK(changed_.WaitUntil(&mutex_, deadline));
    }
  }
  // Before a file is removed, on the thread that does; null: not at all.
  void OnRemove(std::function<void(const std::string& path)> told) {
    MutexLock lock(&mutex_);
    on_remove_ = std::move(told);
  }
  // Of one read or write.
  void LimitTransfers(size_t bytes) {
    MutexLock lock(&mutex_);
    max_transfer_ = bytes;
  }
  // Bytes that the disk has room for from now on.
  void LimitRoom(uint64_t bytes) {
    MutexLock lock(&mutex_);
    room_ = bytes;
  }
  // What changes something fails after so many more of its kind, for ever.
  void StopAfter(int changes) {
    MutexLock lock(&mutex_);
    changes_left_ = changes;
  }

  enum class Names { kLost, kKept };
  // Unsynced contents are lost; names that were not synced may be or not.
  // REQUIRES: no file is open.
  void LosePower(Names names) {
    MutexLock lock(&mutex_);
    for (const std::string& path : unsynced_files_) {
      std::error_code gone;
      std::filesystem::resize_file(path, 0, gone);
    }
    if (names == Names::kLost) {
      for (; !unsynced_names_.empty(); unsynced_names_.pop_back()) {
        Undo(unsynced_names_.back());
      }
    }
    unsynced_files_.clear();
    unsynced_names_.clear();
  }

  int reads() const {
    MutexLock lock(&mutex_);
    return reads_;
  }
  int opens() const {
    MutexLock lock(&mutex_);
    return opens_;
  }

  absl::StatusOr<std::unique_ptr<StoreFile>> Create(
      const std::string& path, uint64_t size_bytes) override {
    {
      MutexLock lock(&mutex_);
      ENGRAM_RETURN_IF_ERROR(CountChange());
      unsynced_files_.insert(path);
      unsynced_names_.push_back({.path = path});
    }
    ENGRAM_ASSIGN_OR_RETURN(auto file, disk_.Create(path, size_bytes));
    return std::make_unique<File>(*this, std::move(file), path);
  }
  absl::StatusOr<std::unique_ptr<StoreFile>> Open(
      const std::string& path) override {
    {
      MutexLock lock(&mutex_);
      ++opens_;
    }
    ENGRAM_RETURN_IF_ERROR(BeforeRead(path));
    ENGRAM_ASSIGN_OR_RETURN(auto file, disk_.Open(path));
    return std::make_unique<File>(*this, std::move(file), path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    MutexLock lock(&mutex_);
    ENGRAM_RETURN_IF_ERROR(CountChange());
    Name name{.path = to, .from = from};
    std::error_code none;
    const std::string kept = absl::StrCat(scratch_dir_, "/", ++scratch_count_);
    std::filesystem::create_hard_link(to, kept, none);
    if (!none) name.kept = kept;
    unsynced_names_.push_back(name);
    if (unsynced_files_.erase(from) > 0) unsynced_files_.insert(to);
    return disk_.Rename(from, to);
  }
  absl::Status Remove(const std::string& path) override {
    std::function<void(const std::string&)> told;
    {
      MutexLock lock(&mutex_);
      told = on_remove_;
    }
    if (told) told(path);
    MutexLock lock(&mutex_);
    ENGRAM_RETURN_IF_ERROR(CountChange());
    return disk_.Remove(path);
  }
  absl::Status MakeDir(const std::string& path) override {
    MutexLock lock(&mutex_);
    ENGRAM_RETURN_IF_ERROR(CountChange());
    if (!std::filesystem::exists(path))
      unsynced_names_.push_back({.path = path});
    return disk_.MakeDir(path);
  }
  absl::Status SyncDir(const std::string& path) override {
    MutexLock lock(&mutex_);
    ENGRAM_RETURN_IF_ERROR(CountChange());
    std::erase_if(unsynced_names_, [&](const Name& name) {
      return std::filesystem::path(name.path).parent_path() == path;
    });
    return disk_.SyncDir(path);
  }
  absl::StatusOr<std::vector<std::string>> List(
      const std::string& path) override {
    return disk_.List(path);
  }

 private:
  // That appeared: created (a directory, too), or renamed from another.
  struct Name {
    std::string path;
    std::string from;
    std::string kept;  // a link to what was there before
  };

  class File final : public StoreFile {
   public:
    File(FaultyFiles& files, std::unique_ptr<StoreFile> file, std::string path)
        : files_(files), file_(std::move(file)), path_(std::move(path)) {}

    absl::StatusOr<size_t> ReadSome(uint64_t offset,
                                    absl::Span<std::byte> out) const override {
      ENGRAM_RETURN_IF_ERROR(files_.BeforeRead(path_));
      return file_->ReadSome(offset, out.subspan(0, files_.max_transfer()));
    }
    absl::StatusOr<size_t> WriteSome(
        uint64_t offset, absl::Span<const std::byte> bytes) override {
      bytes = bytes.subspan(0, files_.max_transfer());
      ENGRAM_RETURN_IF_ERROR(files_.BeforeWrite(path_, bytes.size()));
      return file_->WriteSome(offset, bytes);
    }
    absl::Status Sync() override {
      MutexLock lock(&files_.mutex_);
      ENGRAM_RETURN_IF_ERROR(files_.CountChange());
      files_.unsynced_files_.erase(path_);
      return file_->Sync();
    }
    absl::StatusOr<uint64_t> SizeBytes() const override {
      return file_->SizeBytes();
    }

   private:
    FaultyFiles& files_;
    const std::unique_ptr<StoreFile> file_;
    const std::string path_;
  };

  static void Undo(const Name& name) {
    std::error_code gone;
    if (name.from.empty()) {
      std::filesystem::remove_all(name.path, gone);
      return;
    }
    std::filesystem::rename(name.path, name.from, gone);
    if (!name.kept.empty()) std::filesystem::rename(name.kept, name.path, gone);
  }

  absl::Status CountChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (changes_left_ > 0) {
      --changes_left_;
      return absl::OkStatus();
    }
    return absl::UnavailableError("the disk takes no more changes");
  }

  absl::Status BeforeRead(const std::string& path) {
    const auto is_in = [&](const std::string& part) {
      return !part.empty() && absl::StrContains(path, part);
    };
    MutexLock lock(&mutex_);
    ++reads_;
    if (is_in(held_part_)) {
      ++held_reads_;
      changed_.NotifyAll();
      while (is_in(held_part_)) changed_.Wait(&mutex_);
      --held_reads_;
    }
    if (!is_in(failing_part_)) return absl::OkStatus();
    return StoreFileError(read_error_, "read", path);
  }

  absl::Status BeforeWrite(const std::string& path, uint64_t bytes) {
    MutexLock lock(&mutex_);
    ENGRAM_RETURN_IF_ERROR(CountChange());
    if (bytes > room_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot write ", path, ": No space left on device"));
    }
    room_ -= bytes;
    unsynced_files_.insert(path);
    return absl::OkStatus();
  }

  size_t max_transfer() const {
    MutexLock lock(&mutex_);
    return max_transfer_;
  }

  static constexpr int kNever = std::numeric_limits<int>::max();

  const std::string scratch_dir_;
  StoreFiles& disk_ = StoreFiles::Disk();
  mutable Mutex mutex_;
  CondVar changed_;
  std::function<void(const std::string&)> on_remove_ ABSL_GUARDED_BY(mutex_);
  std::string failing_part_ ABSL_GUARDED_BY(mutex_);
  int read_error_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string held_part_ ABSL_GUARDED_BY(mutex_);
  int held_reads_ ABSL_GUARDED_BY(mutex_) = 0;
  int reads_ ABSL_GUARDED_BY(mutex_) = 0;
  int opens_ ABSL_GUARDED_BY(mutex_) = 0;
  int changes_left_ ABSL_GUARDED_BY(mutex_) = kNever;
  int scratch_count_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t max_transfer_ ABSL_GUARDED_BY(mutex_) = SIZE_MAX;
  uint64_t room_ ABSL_GUARDED_BY(mutex_) = UINT64_MAX;
  std::set<std::string> unsynced_files_ ABSL_GUARDED_BY(mutex_);
  std::vector<Name> unsynced_names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_FAULTY_FILES_H_
