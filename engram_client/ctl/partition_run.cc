#include "engram_client/ctl/partition_run.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/mutex.h"

namespace engram::ctl {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(100);

class Run {
 public:
  Run(const Manifest& manifest, absl::Span<const PartitionRef> refs,
      PartitionWork work, const PartitionRunOptions& options)
      : manifest_(manifest),
        refs_(refs),
        work_(work),
        options_(options),
        total_bytes_(BytesOf(manifest, refs)) {}

  absl::StatusOr<PartitionRunResult> Do() {
    const size_t count =
        std::min(std::max<size_t>(1, options_.threads), refs_.size());
    uint64_t most = 0;
    for (const PartitionRef& ref : refs_) {
      most = std::max(most, BytesOf(manifest_, ref));
    }
    // Here, where it can be told that there is none.
    std::vector<std::unique_ptr<std::byte[]>> buffers(count);
    for (auto& buffer : buffers) {
      buffer = std::make_unique_for_overwrite<std::byte[]>(most);
    }
    const bool interrupted = options_.interrupted();
    {
      MutexLock lock(&mutex_);
      stopping_ = interrupted;
      working_ = count;
    }
    std::vector<std::thread> threads;
    for (const auto& buffer : buffers) {
      threads.emplace_back([this, memory = buffer.get()] { Work(memory); });
    }
    Watch();
    for (std::thread& thread : threads) thread.join();
    MutexLock lock(&mutex_);
    if (!error_.ok()) return error_;
    result_.interrupted = stopping_ && next_ < refs_.size();
    return result_;
  }

 private:
  void Work(std::byte* memory) {
    while (const std::optional<size_t> next = TakeNext()) {
      const PartitionRef& ref = refs_[*next];
      const uint64_t bytes = BytesOf(manifest_, ref);
      const absl::Status status =
          work_(ref, absl::MakeSpan(memory, bytes), [this](size_t count) {
            read_bytes_.fetch_add(count, std::memory_order_relaxed);
            return absl::OkStatus();
          });
      Ended(bytes, status);
    }
    MutexLock lock(&mutex_);
    --working_;
    changed_.NotifyAll();
  }

  std::optional<size_t> TakeNext() {
    MutexLock lock(&mutex_);
    if (stopping_ || !error_.ok() || next_ == refs_.size()) return std::nullopt;
    return next_++;
  }

  void Ended(uint64_t bytes, const absl::Status& status) {
    MutexLock lock(&mutex_);
    if (!status.ok()) {
      if (error_.ok()) error_ = status;
      return;
    }
    ++result_.partitions;
    result_.bytes += bytes;
  }

  // Until all threads have nothing left to do.
  void Watch() {
    while (true) {
      bool stopping = false;
      {
        MutexLock lock(&mutex_);
        if (working_ > 0) changed_.WaitFor(&mutex_, kLook);
        if (working_ == 0) return;
        stopping = stopping_;
      }
      options_.progress(
          std::min(read_bytes_.load(std::memory_order_relaxed), total_bytes_),
          total_bytes_);
      if (stopping || !options_.interrupted()) continue;
      MutexLock lock(&mutex_);
      stopping_ = true;
    }
  }

  const Manifest& manifest_;
  const absl::Span<const PartitionRef> refs_;
  const PartitionWork work_;
  const PartitionRunOptions& options_;
  const uint64_t total_bytes_;
  std::atomic<uint64_t> read_bytes_{0};
  Mutex mutex_;
  CondVar changed_;
  size_t working_ ABSL_GUARDED_BY(mutex_) = 0;  // threads
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);  // the first
  PartitionRunResult result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<PartitionRunResult> RunOverPartitions(
    const Manifest& manifest, absl::Span<const PartitionRef> refs,
    PartitionWork work, const PartitionRunOptions& options) {
  return Run(manifest, refs, work, options).Do();
}

uint64_t BytesOf(const Manifest& manifest, const PartitionRef& ref) {
  return manifest.RowsIn(*manifest.IndexOf(ref.layer), ref.partition) *
         manifest.row_format().row_bytes();
}

uint64_t BytesOf(const Manifest& manifest,
                 absl::Span<const PartitionRef> refs) {
  uint64_t bytes = 0;
  for (const PartitionRef& ref : refs) bytes += BytesOf(manifest, ref);
  return bytes;
}

}  // namespace engram::ctl
