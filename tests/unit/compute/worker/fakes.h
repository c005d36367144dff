#ifndef ENGRAM_TESTS_UNIT_COMPUTE_WORKER_FAKES_H_
#define ENGRAM_TESTS_UNIT_COMPUTE_WORKER_FAKES_H_

#include <prometheus/registry.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "compute/block/engram_block.h"
#include "compute/block/row_source.h"
#include "compute/worker/metrics.h"
#include "compute/worker/step_engine.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/notification.h"
#include "core/base/thread_pool.h"
#include "tests/testing/eventually.h"

namespace engram::test {

// The "tiny" model with arithmetic that any test can repeat: a live token's
// stream bytes grow by the sum of the bytes of its rows.
class FakeBlock final : public EngramBlock {
 public:
  FakeBlock();

  const EngramConfig& config() const override { return config_; }
  const EngramLayout& layout() const override { return layout_; }
  const RowFormat& row_format() const override { return row_format_; }
  const NgramHasher& hasher() const override { return *hasher_; }
  ProjectionMode projection_mode() const override {
    return ProjectionMode::kInvariant;
  }
  size_t tile_tokens() const override { return 256; }
  absl::StatusOr<RowsBuffer> AllocateRows(size_t size_bytes) const override;
  BlockUse use() const override { return {.rows = rows_pool_.use()}; }
  absl::Status health() const override;
  absl::Status Forward(size_t layer_index, StreamDtype dtype,
                       absl::Span<const std::byte> packed_rows,
                       absl::Span<const std::byte> streams,
                       absl::Span<const uint8_t> mask,
                       const BlockOutputs& outputs) const override;

  // Called at the start of every Forward with its tokens.
  void OnForward(std::function<absl::Status(size_t tokens)> hook);
  int forwards() const;
  // What health() says and, if it is not OK, every Forward.
  void SetHealth(absl::Status health);

  // Bytes of the pool that rows come from.
  static constexpr size_t kPoolBytes = 1 << 16;

 private:
  EngramConfig config_;
  EngramLayout layout_;
  RowFormat row_format_;
  std::unique_ptr<NgramHasher> hasher_;
  std::vector<std::byte> arena_ = std::vector<std::byte>(kPoolBytes);
  mutable RowsPool rows_pool_{absl::MakeSpan(arena_)};
  mutable Mutex mutex_;
  absl::Status health_ ABSL_GUARDED_BY(mutex_);
  std::function<absl::Status(size_t)> hook_ ABSL_GUARDED_BY(mutex_);
  mutable int forwards_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Rows that are a function of (layer, row). Answers at once, or when told to.
class FakeRowSource final : public RowSource {
 public:
  enum class Mode { kAtOnce, kWhenTold };
  FakeRowSource(const RowFormat& format, Mode mode)
      : format_(format), mode_(mode) {}
  ~FakeRowSource() override;

  std::unique_ptr<RowFetch> Fetch(
      LayerId layer, absl::Span<const RowId> row_ids, absl::Span<std::byte> out,
      absl::Time deadline,
      absl::AnyInvocable<void(absl::Status)> done) override;
  const RowFormat& row_format() const override { return format_; }
  const std::string& version() const override { return version_; }

  // Waits for the fetches that were started, in order of their start.
  void AwaitFetches(size_t count);
  LayerId layer(size_t fetch) const;
  absl::Time deadline(size_t fetch) const;
  std::vector<RowId> row_ids(size_t fetch) const;
  // Ends a fetch that has not ended: with its rows, or an error.
  void Complete(size_t fetch, absl::Status status = absl::OkStatus());
  size_t started() const;
  size_t cancelled() const;
  // Fetches whose buffers may still be written.
  size_t open() const;

  static std::byte RowByte(LayerId layer, RowId row);

 private:
  class FakeFetch;
  struct Entry;
  void End(const std::shared_ptr<Entry>& entry, absl::Status status);

  const RowFormat format_;
  const Mode mode_;
  const std::string version_ = "v1";
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  size_t cancelled_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Collects what a step says.
class StepLog final : public StepObserver {
 public:
  void OnResult(StepChunkResult result) override;
  void OnEnd(const absl::Status& status) override;

  // Waits for so many results; takes them, in order of arrival.
  std::vector<StepChunkResult> AwaitResults(size_t count);
  absl::Status AwaitEnd();
  bool ended() const { return ended_.HasBeenNotified(); }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<StepChunkResult> results_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  Notification ended_;
};

// An engine over the fakes.
struct EngineFixture {
  explicit EngineFixture(
      FakeRowSource::Mode mode = FakeRowSource::Mode::kAtOnce,
      std::function<void(StepEngine::Options&)> change = nullptr);

  FakeBlock block;
  FakeRowSource rows;
  prometheus::Registry registry;
  WorkerMetrics metrics{registry};
  FakeClock clock{absl::FromUnixSeconds(1000)};
  ThreadPool pool{{.thread_count = 2}};
  std::unique_ptr<StepEngine> engine;
};

// Streams of all the tokens, each byte a function of its place.
std::string Streams(const EngramBlock& block, uint64_t tokens,
                    StreamDtype dtype = StreamDtype::kBf16);
v1::Sequence MakeSequence(const std::vector<uint32_t>& tokens,
                          const std::vector<bool>& mask = {});
// A bf16 step of one sequence from position 0 on, for all layers.
StepSpec MakeSpec(const EngramBlock& block, const std::vector<uint32_t>& tokens,
                  const std::vector<bool>& mask = {});
// What FakeBlock gives for one layer of that step.
std::string WantedStreams(const EngramBlock& block, size_t layer_index,
                          const std::vector<uint32_t>& tokens,
                          const std::vector<bool>& mask,
                          const std::string& streams);

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_COMPUTE_WORKER_FAKES_H_
