#include "compute/block/gpu_block.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compute/block/gpu_layer_step.h"
#include "compute/block/gpu_slot.h"
#include "compute/block/gpu_tile.h"
#include "compute/block/slot_pool.h"
#include "compute/block/step_spans.h"
#include "compute/project/gpu_projection.h"
#include "core/base/mutex.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/gpu/gpu_device.h"
#include "core/gpu/gpu_memory.h"

namespace engram {
namespace {

// For all kernels to run once: on a device that is newer than they are, the
// driver first compiles them.
constexpr absl::Duration kWarmUpTimeout = absl::Minutes(5);

using LayerSteps = std::vector<std::unique_ptr<const GpuLayerStep>>;
using Slots = std::vector<std::unique_ptr<GpuSlot>>;

// After an error: the device has had its time already.
constexpr absl::Duration kLastWait = absl::Seconds(2);

// All that a block has of the device.
struct OnDevice {
  OnDevice(LayerSteps layer_steps, Slots all_slots, PinnedBuffer pinned_rows)
      : layers(std::move(layer_steps)),
        rows(std::move(pinned_rows)),
        slots(std::move(all_slots)) {}

  const LayerSteps layers;
  const PinnedBuffer rows;
  SlotPool<GpuSlot> slots;
};

// Giving back what a device has that does not answer any more would wait for
// it for ever. Kept where leak checkers find it.
void Abandon(std::unique_ptr<OnDevice> on_device) {
  static Mutex& mutex = *new Mutex;
  static auto& abandoned = *new std::vector<std::unique_ptr<OnDevice>>;
  MutexLock lock(&mutex);
  abandoned.push_back(std::move(on_device));
}

class GpuEngramBlock final : public EngramBlock {
 public:
  GpuEngramBlock(const Checkpoint& checkpoint, NgramHasher hasher,
                 const GpuBlockOptions& options,
                 std::unique_ptr<OnDevice> on_device)
      : config_(checkpoint.config()),
        layout_(checkpoint.layout()),
        row_format_(checkpoint.row_format()),
        hasher_(std::move(hasher)),
        options_(options),
        on_device_(std::move(on_device)),
        rows_(std::make_unique<RowsPool>(absl::MakeSpan(
            on_device_->rows.data(), on_device_->rows.size_bytes()))) {}

  ~GpuEngramBlock() override {
    if (!health().ok()) Abandon(std::move(on_device_));
  }

  const EngramConfig& config() const override { return config_; }
  const EngramLayout& layout() const override { return layout_; }
  const RowFormat& row_format() const override { return row_format_; }
  const NgramHasher& hasher() const override { return hasher_; }
  ProjectionMode projection_mode() const override {
    return options_.projection;
  }
  size_t tile_tokens() const override { return options_.tile_tokens; }

  absl::StatusOr<RowsBuffer> AllocateRows(size_t size_bytes) const override {
    return rows_->Allocate(size_bytes);
  }
  BlockUse use() const override {
    return {.rows = rows_->use(),
            .slots_limit = on_device_->slots.size(),
            .slots_in_use = on_device_->slots.in_use()};
  }
  absl::Status health() const override {
    MutexLock lock(&mutex_);
    return health_;
  }

  absl::Status Forward(size_t layer_index, StreamDtype dtype,
                       absl::Span<const std::byte> packed_rows,
                       absl::Span<const std::byte> streams,
                       absl::Span<const uint8_t> mask,
                       const BlockOutputs& outputs) const override {
    ENGRAM_RETURN_IF_ERROR(
        CheckLayerIndex(layer_index, on_device_->layers.size()));
    ENGRAM_ASSIGN_OR_RETURN(
        const StepSpans step,
        StepSpans::Create(config_, row_format_,
                          {dtype, packed_rows, streams, mask}, outputs));
    ENGRAM_RETURN_IF_ERROR(health());
    step.WriteDeadTokens();
    const size_t live = step.live().size();
    for (size_t done = 0; done < live; done += options_.tile_tokens) {
      ENGRAM_RETURN_IF_ERROR(
          ForwardTile({.step = step,
                       .layer = *on_device_->layers[layer_index],
                       .layer_index = layer_index,
                       .first = done,
                       .count = std::min(options_.tile_tokens, live - done)}));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ForwardTile(const GpuTile& tile) const {
    ENGRAM_ASSIGN_OR_RETURN(
        const SlotPool<GpuSlot>::Lease slot,
        on_device_->slots.Acquire(absl::Now() + options_.slot_timeout));
    // Also: a slot that a failed device may still write to is used no more.
    ENGRAM_RETURN_IF_ERROR(health());
    absl::Status status = SelectGpuDevice(options_.device);
    if (status.ok()) {
      status = ComputeTile(tile, {.pinned_rows = *rows_, .pool = options_.pool},
                           absl::Now() + options_.device_timeout, *slot);
    }
    return status.ok() ? status : AfterError(*slot, status);
  }

  // Waits until nothing touches the caller's memory and the slot any more. A
  // device that is past use says so here: every call fails from then on, or
  // the wait does not end.
  absl::Status AfterError(GpuSlot& slot, const absl::Status& error) const {
    const absl::Status rest = slot.AwaitAll(
        absl::Now() + std::min(kLastWait, options_.device_timeout));
    if (rest.ok()) {  // an error of this call only
      return absl::IsDeadlineExceeded(error)
                 ? absl::ResourceExhaustedError(error.message())
                 : error;
    }
    MutexLock lock(&mutex_);
    if (health_.ok()) {
      health_ = absl::UnavailableError(
          absl::StrCat("cuda:", options_.device,
                       " has failed and this process cannot use it again: ",
                       error.message()));
    }
    return health_;
  }

  const EngramConfig config_;
  const EngramLayout layout_;
  const RowFormat row_format_;
  const NgramHasher hasher_;
  const GpuBlockOptions options_;
  // All methods of the block are const; what they share is in these.
  std::unique_ptr<OnDevice> on_device_;
  const std::unique_ptr<RowsPool> rows_;
  mutable Mutex mutex_;
  mutable absl::Status health_ ABSL_GUARDED_BY(mutex_);
};

absl::Status CheckOptions(const GpuBlockOptions& options) {
  if (options.slots > 0 && options.tile_tokens > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a GPU block of ", options.slots, " slots for ",
                   options.tile_tokens, " tokens, at least 1 of each"));
}

absl::StatusOr<Slots> CreateSlots(const Checkpoint& checkpoint,
                                  const GpuBlockOptions& options) {
  const GpuSlotSizes sizes = GpuSlotSizes::For(
      checkpoint.config(), checkpoint.row_format(), options.tile_tokens);
  Slots slots;
  while (slots.size() < options.slots) {
    ENGRAM_ASSIGN_OR_RETURN(std::unique_ptr<GpuSlot> slot,
                            GpuSlot::Create(sizes));
    slots.push_back(std::move(slot));
  }
  return slots;
}

// Every kernel, before a graph needs it. Layers share the kernels, but each has
// a cuBLASLt of its own.
absl::Status WarmUpLayers(const OnDevice& on_device, ProjectionMode mode,
                          GpuSlot& slot) {
  const absl::Time deadline = absl::Now() + kWarmUpTimeout;
  for (const auto& layer : on_device.layers) {
    ENGRAM_RETURN_IF_ERROR(WarmUp(*layer, deadline, slot));
    if (mode == ProjectionMode::kInvariant) break;
  }
  return absl::OkStatus();
}

// What can fail on a device that is there fails now, so that the CPU can take
// its place: in each layer a graph with its copies.
absl::Status TryOut(const EngramBlock& block) {
  const EngramConfig& config = block.config();
  ENGRAM_ASSIGN_OR_RETURN(const RowsBuffer rows,
                          block.AllocateRows(size_t{config.columns()} *
                                             block.row_format().row_bytes()));
  std::fill(rows.bytes().begin(), rows.bytes().end(), std::byte{0});
  const size_t values = size_t{config.hc_mult} * config.dim;
  std::vector<std::byte> streams(values * StreamBytes(StreamDtype::kBf16));
  std::vector<float> gate(config.hc_mult);
  std::vector<uint16_t> value(config.dim);
  for (size_t i = 0; i < block.layout().layers().size(); ++i) {
    ENGRAM_RETURN_IF_ERROR(block.Forward(i, StreamDtype::kBf16, rows.bytes(),
                                         streams, {},
                                         {.streams = absl::MakeSpan(streams),
                                          .gate = absl::MakeSpan(gate),
                                          .value = absl::MakeSpan(value)}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const EngramBlock>> CreateGpuEngramBlock(
    const Checkpoint& checkpoint, const TokenMap& token_map,
    const GpuBlockOptions& wanted) {
  ENGRAM_RETURN_IF_ERROR(CheckOptions(wanted));
  GpuBlockOptions options = wanted;
  options.projection = UsableProjectionMode(wanted.projection);
  // Weights are packed by threads also where later copies are not.
  std::unique_ptr<ThreadPool> loading;
  if (options.pool == nullptr) {
    loading = std::make_unique<ThreadPool>(ThreadPool::Options());
  }
  ENGRAM_RETURN_IF_ERROR(SelectGpuDevice(options.device));
  ENGRAM_ASSIGN_OR_RETURN(
      NgramHasher hasher,
      NgramHasher::Create(checkpoint.config(), checkpoint.layout(), token_map));
  ENGRAM_ASSIGN_OR_RETURN(
      LayerSteps layers,
      GpuLayerStep::CreateAll(
          checkpoint,
          {.projection = options.projection, .max_tokens = options.tile_tokens},
          loading != nullptr ? loading.get() : options.pool));
  ENGRAM_ASSIGN_OR_RETURN(Slots slots, CreateSlots(checkpoint, options));
  ENGRAM_ASSIGN_OR_RETURN(PinnedBuffer rows,
                          PinnedBuffer::Allocate(options.pinned_rows_bytes));
  auto on_device = std::make_unique<OnDevice>(
      std::move(layers), std::move(slots), std::move(rows));
  const std::string trying = absl::StrCat("trying cuda:", options.device);
  {
    ENGRAM_ASSIGN_OR_RETURN(const SlotPool<GpuSlot>::Lease slot,
                            on_device->slots.Acquire(absl::InfinitePast()));
    ENGRAM_RETURN_IF_ERROR(
        Annotate(WarmUpLayers(*on_device, options.projection, *slot), trying));
  }
  auto block = std::make_unique<const GpuEngramBlock>(
      checkpoint, std::move(hasher), options, std::move(on_device));
  ENGRAM_RETURN_IF_ERROR(Annotate(TryOut(*block), trying));
  return block;
}

}  // namespace engram
