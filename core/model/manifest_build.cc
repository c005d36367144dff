#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/base/thread_pool.h"
#include "core/model/manifest.h"

namespace engram {
namespace {

// Rows are packed, counted and digested in pieces that stay in a core's cache.
constexpr size_t kPieceBytes = size_t{1} << 20;

struct StateDeleter {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

// The digest of one partition, fed in pieces; equal to DigestOf the whole.
class PartitionHasher {
 public:
  PartitionHasher() : state_(XXH3_createState()) {
    ENGRAM_CHECK(state_ != nullptr);
  }
  void Start() { XXH3_128bits_reset(state_.get()); }
  void Add(absl::Span<const std::byte> bytes) {
    XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  }
  PartitionDigest Finish() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
    PartitionDigest digest;
    std::memcpy(digest.data(), canonical.digest, digest.size());
    return digest;
  }

 private:
  std::unique_ptr<XXH3_state_t, StateDeleter> state_;
};

struct PartitionJob {
  size_t layer_index = 0;
  uint64_t first_row = 0;
  uint64_t rows = 0;
  PartitionDigest* digest = nullptr;
};

struct LayerDefects {
  std::atomic<uint64_t> nan_codes{0};
  std::atomic<uint64_t> nan_scales{0};
};

// One pass over a checkpoint by several threads.
class DigestRun {
 public:
  DigestRun(const Checkpoint& checkpoint, std::vector<PartitionJob> jobs,
            absl::FunctionRef<void(uint64_t, uint64_t)> progress)
      : checkpoint_(checkpoint),
        jobs_(std::move(jobs)),
        progress_(progress),
        defects_(checkpoint.layers().size()) {
    for (const PartitionJob& job : jobs_) {
      total_bytes_ += job.rows * checkpoint_.row_format().row_bytes();
    }
  }

  absl::Status Run(size_t thread_count) {
    if (thread_count == 0) {
      thread_count = std::max<size_t>(1, std::thread::hardware_concurrency());
    }
    thread_count = std::min(thread_count, jobs_.size());
    if (thread_count > 1) {
      // The calling thread is one of them.
      ThreadPool pool({.thread_count = thread_count - 1});
      pool.ParallelFor(thread_count, [this](size_t) { Work(); });
    } else {
      Work();
    }
    MutexLock lock(&mutex_);
    return status_;
  }

  const LayerDefects& defects(size_t layer_index) const {
    return defects_[layer_index];
  }

 private:
  void Work() {
    const size_t row_bytes = checkpoint_.row_format().row_bytes();
    std::vector<std::byte> piece(std::max<size_t>(1, kPieceBytes / row_bytes) *
                                 row_bytes);
    PartitionHasher hasher;
    while (!failed_.load(std::memory_order_relaxed)) {
      const size_t next = next_.fetch_add(1);
      if (next >= jobs_.size()) return;
      const absl::Status status =
          DigestPartition(jobs_[next], absl::MakeSpan(piece), hasher);
      if (!status.ok()) return Fail(status);
      done_bytes_.fetch_add(jobs_[next].rows * row_bytes);
      Report();
    }
  }

  absl::Status DigestPartition(const PartitionJob& job,
                               absl::Span<std::byte> piece,
                               PartitionHasher& hasher) {
    const RowFormat& format = checkpoint_.row_format();
    const uint64_t piece_rows = piece.size() / format.row_bytes();
    RowDefects found;
    hasher.Start();
    for (uint64_t done = 0; done < job.rows; done += piece_rows) {
      const uint64_t rows = std::min(piece_rows, job.rows - done);
      const absl::Span<std::byte> packed =
          piece.first(rows * format.row_bytes());
      ENGRAM_RETURN_IF_ERROR(
          checkpoint_.PackRows(job.layer_index, job.first_row + done, packed));
      const RowDefects defects = CountDefects(format, packed);
      found.nan_codes += defects.nan_codes;
      found.nan_scales += defects.nan_scales;
      hasher.Add(packed);
    }
    *job.digest = hasher.Finish();
    defects_[job.layer_index].nan_codes += found.nan_codes;
    defects_[job.layer_index].nan_scales += found.nan_scales;
    return absl::OkStatus();
  }

  void Fail(const absl::Status& status) {
    failed_.store(true);
    MutexLock lock(&mutex_);
    status_.Update(status);
  }

  // Whoever finds nobody reporting does it; a report that is left out is made
  // up for by the next. Seeing the last byte done is left to nobody's luck:
  // the reporter looks again after it let go.
  void Report() {
    uint64_t reported = 0;
    do {
      if (reporting_.exchange(true)) return;
      reported = done_bytes_.load();
      if (reported > last_reported_) progress_(reported, total_bytes_);
      last_reported_ = reported;
      reporting_.store(false);
    } while (done_bytes_.load() != reported);
  }

  const Checkpoint& checkpoint_;
  const std::vector<PartitionJob> jobs_;
  const absl::FunctionRef<void(uint64_t, uint64_t)> progress_;
  uint64_t total_bytes_ = 0;
  std::vector<LayerDefects> defects_;
  std::atomic<size_t> next_{0};
  std::atomic<uint64_t> done_bytes_{0};
  std::atomic<bool> reporting_{false};
  uint64_t last_reported_ = 0;  // owned by whoever set reporting_
  std::atomic<bool> failed_{false};
  Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // the first failure
};

absl::Status CheckSound(const Checkpoint& checkpoint, const DigestRun& run) {
  std::vector<std::string> unsound;
  for (size_t i = 0; i < checkpoint.layers().size(); ++i) {
    const uint64_t nan_codes = run.defects(i).nan_codes;
    const uint64_t nan_scales = run.defects(i).nan_scales;
    if (nan_codes == 0 && nan_scales == 0) continue;
    unsound.push_back(absl::StrCat(
        "layer ", ToInt(checkpoint.layout().layers()[i].layer_id), " has ",
        nan_codes, " NaN codes and ", nan_scales, " NaN scales"));
  }
  if (unsound.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(checkpoint.dir(), ": ", absl::StrJoin(unsound, "; "),
                   ": a sound checkpoint has none"));
}

// The first key of the configs that differs, with both values.
std::string ConfigDifference(const EngramConfig& manifest,
                             const EngramConfig& checkpoint) {
  const auto ours = nlohmann::json::parse(ConfigToJson(manifest));
  auto theirs = nlohmann::json::parse(ConfigToJson(checkpoint));
  for (const auto& [key, value] : ours.items()) {
    if (theirs[key] != value) {
      return absl::StrCat(key, " is ", value.dump(), " in the manifest and ",
                          theirs[key].dump(), " in the checkpoint");
    }
    theirs.erase(key);
  }
  return absl::StrCat("the manifest lacks ", theirs.dump());
}

absl::Status OfAnother(const Manifest& manifest, absl::string_view checkpoint,
                       absl::string_view difference) {
  return absl::FailedPreconditionError(absl::StrCat(
      "the manifest (version ", manifest.version(),
      ") is not of the checkpoint ", checkpoint, ": ", difference));
}

}  // namespace

absl::StatusOr<Manifest> BuildManifest(
    const Checkpoint& checkpoint, const BuildManifestOptions& options,
    absl::FunctionRef<void(uint64_t, uint64_t)> progress) {
  std::vector<uint64_t> row_counts;
  for (const LayerLayout& layer : checkpoint.layout().layers()) {
    row_counts.push_back(layer.row_count);
  }
  const uint64_t partition_rows = options.partition_rows > 0
                                      ? options.partition_rows
                                      : DefaultPartitionRows(row_counts);
  ENGRAM_RETURN_IF_ERROR(CheckPartitionRows(partition_rows, row_counts));

  std::vector<ManifestLayer> layers;
  std::vector<PartitionJob> jobs;
  layers.reserve(row_counts.size());  // jobs point into it
  for (size_t i = 0; i < row_counts.size(); ++i) {
    const uint64_t rows = row_counts[i];
    const uint64_t partitions = (rows + partition_rows - 1) / partition_rows;
    layers.push_back({checkpoint.layout().layers()[i].layer_id, rows,
                      std::vector<PartitionDigest>(partitions)});
    for (uint64_t p = 0; p < partitions; ++p) {
      const uint64_t first_row = p * partition_rows;
      jobs.push_back({i, first_row, std::min(partition_rows, rows - first_row),
                      &layers.back().digests[p]});
    }
  }

  DigestRun run(checkpoint, std::move(jobs), progress);
  ENGRAM_RETURN_IF_ERROR(run.Run(options.thread_count));
  if (!options.allow_nan) ENGRAM_RETURN_IF_ERROR(CheckSound(checkpoint, run));
  return Manifest::Create(checkpoint.config(), checkpoint.row_format(),
                          partition_rows, std::move(layers), "checkpoint");
}

absl::Status CheckManifestConfig(const Manifest& manifest,
                                 const EngramConfig& config,
                                 absl::string_view checkpoint) {
  if (manifest.source() != "checkpoint") {
    return OfAnother(manifest, checkpoint,
                     absl::StrCat("its source is ", manifest.source()));
  }
  if (manifest.config() == config) return absl::OkStatus();
  return OfAnother(manifest, checkpoint,
                   ConfigDifference(manifest.config(), config));
}

absl::Status CheckManifestMatches(const Manifest& manifest,
                                  const Checkpoint& checkpoint) {
  ENGRAM_RETURN_IF_ERROR(
      CheckManifestConfig(manifest, checkpoint.config(), checkpoint.dir()));
  const RowFormat& format = manifest.row_format();
  const RowFormat& stored = checkpoint.row_format();
  if (format == stored) return absl::OkStatus();
  return OfAnother(
      manifest, checkpoint.dir(),
      absl::StrCat("rows of ", format.width, " features in blocks of ",
                   format.block_size, " in the manifest, of ", stored.width,
                   " in blocks of ", stored.block_size, " in the checkpoint"));
}

}  // namespace engram
