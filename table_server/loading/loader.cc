#include "table_server/loading/loader.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/base/thread_pool.h"

namespace engram {
namespace {

// Rows are packed and looked at in pieces that stay in a core's cache.
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr absl::Duration kProgressInterval = absl::Milliseconds(100);

std::string ToHex(const PartitionDigest& digest) {
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(digest.data()), digest.size()));
}

std::string NameOf(const PartitionRef& ref) {
  return absl::StrCat("layer ", ToInt(ref.layer), " partition ",
                      ToInt(ref.partition));
}

// What the threads of one load share.
class LoadState {
 public:
  LoadState(size_t thread_count, size_t layer_count,
            const std::atomic<bool>* stop)
      : stop_(stop), running_(thread_count), defects_(layer_count) {}

  // Index of the next partition to load.
  size_t TakeNext() { return next_.fetch_add(1, std::memory_order_relaxed); }

  bool stopping() const {
    return failed_.load(std::memory_order_relaxed) ||
           (stop_ != nullptr && stop_->load(std::memory_order_relaxed));
  }

  void Done(size_t layer_index, uint64_t bytes, const RowDefects& defects) {
    MutexLock lock(&mutex_);
    done_bytes_ += bytes;
    defects_[layer_index].nan_codes += defects.nan_codes;
    defects_[layer_index].nan_scales += defects.nan_scales;
  }

  void Fail(const absl::Status& status) {
    failed_.store(true, std::memory_order_relaxed);
    MutexLock lock(&mutex_);
    status_.Update(status);
  }

  void ThreadEnded() {
    MutexLock lock(&mutex_);
    --running_;
    changed_.NotifyAll();
  }

  // Waits for the threads or `until`. Sets `done_bytes`; true when all ended.
  bool WaitUntil(absl::Time until, uint64_t& done_bytes) {
    MutexLock lock(&mutex_);
    while (running_ > 0 && changed_.WaitUntil(&mutex_, until)) {
    }
    done_bytes = done_bytes_;
    return running_ == 0;
  }

  absl::StatusOr<LoadReport> Report() {
    MutexLock lock(&mutex_);
    if (!status_.ok()) return status_;
    if (stop_ != nullptr && stop_->load()) {
      return absl::CancelledError("loading was stopped");
    }
    return LoadReport{done_bytes_, defects_};
  }

 private:
  const std::atomic<bool>* const stop_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> failed_{false};
  Mutex mutex_;
  CondVar changed_;
  size_t running_ ABSL_GUARDED_BY(mutex_);
  uint64_t done_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // the first failure
  std::vector<RowDefects> defects_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

Loader::Loader(const Checkpoint& checkpoint, const Manifest& manifest,
               HostTier& tier, PartitionSet& partitions, Options options)
    : checkpoint_(checkpoint),
      manifest_(manifest),
      tier_(tier),
      partitions_(partitions),
      options_(std::move(options)) {}

absl::StatusOr<LoadReport> Loader::Load(absl::Span<const PartitionRef> owned) {
  uint64_t total_bytes = 0;
  std::vector<size_t> layer_indices;
  layer_indices.reserve(owned.size());
  for (const PartitionRef& ref : owned) {
    ENGRAM_ASSIGN_OR_RETURN(const size_t index, manifest_.IndexOf(ref.layer));
    layer_indices.push_back(index);
    total_bytes += tier_.MutablePartition(index, ref.partition).size();
  }
  const size_t thread_count =
      options_.thread_count > 0
          ? options_.thread_count
          : std::max<size_t>(1, std::thread::hardware_concurrency());
  LoadState state(thread_count, manifest_.layers().size(), options_.stop);
  const auto work = [&] {
    for (size_t i = state.TakeNext(); i < owned.size() && !state.stopping();
         i = state.TakeNext()) {
      RowDefects defects;
      const absl::Status status = LoadOne(owned[i], defects);
      if (!status.ok()) {
        state.Fail(status);
        break;
      }
      const auto packed =
          tier_.MutablePartition(layer_indices[i], owned[i].partition);
      state.Done(layer_indices[i], packed.size(), defects);
    }
    state.ThreadEnded();
  };
  // Joined before what its threads refer to goes away.
  ThreadPool pool({.thread_count = thread_count});
  for (size_t i = 0; i < thread_count; ++i) ENGRAM_CHECK(pool.TryAdd(work));
  uint64_t done_bytes = 0;
  bool ended = false;
  while (!ended) {
    ended = state.WaitUntil(absl::Now() + kProgressInterval, done_bytes);
    if (options_.progress) options_.progress(done_bytes, total_bytes);
  }
  return state.Report();
}

absl::Status Loader::LoadOne(const PartitionRef& ref, RowDefects& defects) {
  ENGRAM_ASSIGN_OR_RETURN(const size_t layer_index,
                          manifest_.IndexOf(ref.layer));
  const absl::Span<std::byte> packed =
      tier_.MutablePartition(layer_index, ref.partition);
  const RowFormat& format = manifest_.row_format();
  const size_t piece_bytes =
      std::max<size_t>(1, kPieceBytes / format.row_bytes()) *
      format.row_bytes();
  uint64_t row = ToInt(ref.partition) * manifest_.partition_rows();
  for (size_t at = 0; at < packed.size(); at += piece_bytes) {
    const absl::Span<std::byte> piece = packed.subspan(at, piece_bytes);
    ENGRAM_RETURN_IF_ERROR(
        Annotate(checkpoint_.PackRows(layer_index, row, piece), NameOf(ref)));
    const RowDefects found = CountDefects(format, piece);
    defects.nan_codes += found.nan_codes;
    defects.nan_scales += found.nan_scales;
    row += piece.size() / format.row_bytes();
  }
  ENGRAM_RETURN_IF_ERROR(Verify(ref, layer_index, packed));
  partitions_.Add(layer_index, ref.partition);
  return absl::OkStatus();
}

absl::Status Loader::Verify(const PartitionRef& ref, size_t layer_index,
                            absl::Span<const std::byte> packed) const {
  const PartitionDigest found = DigestOf(packed);
  const PartitionDigest& wanted =
      manifest_.layers()[layer_index].digests[ToInt(ref.partition)];
  if (found == wanted) return absl::OkStatus();
  const LayerTensors& tensors = checkpoint_.layers()[layer_index];
  std::string files = tensors.embed_weight.file->path();
  if (tensors.embed_scale.file->path() != files) {
    absl::StrAppend(&files, " and ", tensors.embed_scale.file->path());
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "manifest of another checkpoint or damaged file: ", NameOf(ref), " in ",
      files, " has digest ", ToHex(found), ", the manifest says ",
      ToHex(wanted)));
}

}  // namespace engram
