#include "engram_client/ctl/checkpoint_writer.h"

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "core/base/atomic_file.h"
#include "core/base/notification.h"
#include "core/base/page_buffer.h"
#include "core/base/status_macros.h"
#include "core/model/presets.h"
#include "core/model/token_map.h"
#include "engram_client/ctl/made_up_bytes.h"
#include "engram_client/ctl/tensor_file.h"

namespace engram::ctl {
namespace {

constexpr size_t kBatchBytes = 32 << 20;  // written in one go
constexpr size_t kPieceBytes = 1 << 20;   // computed by one thread
static_assert(kBatchBytes % kPieceBytes == 0);
static_assert(kPieceBytes % kMadeUpBlockBytes == 0);

struct Batch {
  const MadeUpTensor* tensor;
  uint64_t offset;
  size_t size;
};

std::vector<Batch> SplitIntoBatches(const std::vector<MadeUpTensor>& tensors) {
  std::vector<Batch> batches;
  for (const MadeUpTensor& tensor : tensors) {
    for (uint64_t at = 0; at < tensor.size_bytes; at += kBatchBytes) {
      batches.push_back(
          {&tensor, at,
           std::min<uint64_t>(kBatchBytes, tensor.size_bytes - at)});
    }
  }
  return batches;
}

void Fill(const Batch& batch, PageBuffer& buffer, ThreadPool& pool) {
  auto* data = reinterpret_cast<uint8_t*>(buffer.bytes().data());
  const size_t pieces = (batch.size + kPieceBytes - 1) / kPieceBytes;
  pool.ParallelFor(pieces, [&](size_t i) {
    const size_t at = i * kPieceBytes;
    const size_t size = std::min(kPieceBytes, batch.size - at);
    batch.tensor->fill(batch.offset + at, {data + at, size});
  });
}

// Appends every batch, computing the one after it meanwhile.
absl::Status AppendBatches(const std::vector<Batch>& batches,
                           SafetensorsWriter& writer, ThreadPool& pool,
                           absl::FunctionRef<absl::Status(size_t)> written) {
  std::array<PageBuffer, 2> buffers;
  for (PageBuffer& buffer : buffers) {
    ENGRAM_ASSIGN_OR_RETURN(buffer, PageBuffer::Allocate(kBatchBytes));
  }
  Fill(batches[0], buffers[0], pool);
  for (size_t i = 0; i < batches.size(); ++i) {
    const bool has_next = i + 1 < batches.size();
    PageBuffer& next = buffers[(i + 1) % 2];
    Notification filled;
    const bool filling = has_next && pool.TryAdd([&] {
      Fill(batches[i + 1], next, pool);
      filled.Notify();
    });
    absl::Status status =
        writer.Append(buffers[i % 2].bytes().first(batches[i].size));
    if (status.ok()) status = written(batches[i].size);
    if (filling) filled.Wait();
    ENGRAM_RETURN_IF_ERROR(status);
    if (has_next && !filling) Fill(batches[i + 1], next, pool);
  }
  return absl::OkStatus();
}

absl::Status WriteLayer(const std::vector<MadeUpTensor>& tensors,
                        const std::string& path, ThreadPool& pool,
                        absl::FunctionRef<absl::Status(size_t)> written) {
  std::vector<TensorSpec> specs;
  for (const MadeUpTensor& tensor : tensors) specs.push_back(tensor.spec);
  ENGRAM_ASSIGN_OR_RETURN(
      const std::unique_ptr<SafetensorsWriter> writer,
      SafetensorsWriter::Create(path, std::move(specs), {{"format", "pt"}}));
  ENGRAM_RETURN_IF_ERROR(
      AppendBatches(SplitIntoBatches(tensors), *writer, pool, written));
  return writer->Finish();
}

std::string LayerFileName(size_t index, size_t count) {
  return absl::StrFormat("model-%05d-of-%05d.safetensors", index + 1, count);
}

}  // namespace

CheckpointSize SizeOf(const MadeUpModel& model) {
  constexpr uint64_t kHeaderBytes = 4096;  // of a layer's file, and its names
  CheckpointSize size;
  size.other_bytes =
      uint64_t{model.config.vocab_size} * sizeof(int32_t) + kHeaderBytes;
  for (size_t i = 0; i < model.layout.layers().size(); ++i) {
    size.rows += model.layout.layers()[i].row_count;
    size.other_bytes += kHeaderBytes;
    for (const MadeUpTensor& tensor : MadeUpLayerTensors(model, i)) {
      const absl::string_view name = tensor.spec.name;
      (absl::StrContains(name, ".embed.") ? size.table_bytes
       : absl::StrContains(name, ".wkv.") ? size.wkv_bytes
                                          : size.other_bytes) +=
          tensor.size_bytes;
    }
  }
  return size;
}

absl::Status WriteCheckpoint(const MadeUpModel& model,
                             const std::string& directory, ThreadPool& pool,
                             const WriteHooks& hooks) {
  const size_t layer_count = model.layout.layers().size();
  const uint64_t expected_bytes = SizeOf(model).total();
  uint64_t done_bytes = 0;
  const auto written = [&](size_t bytes) -> absl::Status {
    done_bytes += bytes;
    hooks.progress(done_bytes, expected_bytes);
    if (hooks.interrupted()) return absl::CancelledError("interrupted");
    return absl::OkStatus();
  };

  nlohmann::ordered_json weight_map;
  for (size_t i = 0; i < layer_count; ++i) {
    const std::vector<MadeUpTensor> tensors = MadeUpLayerTensors(model, i);
    const std::string name = LayerFileName(i, layer_count);
    for (const MadeUpTensor& tensor : tensors) {
      weight_map[tensor.spec.name] = name;
    }
    ENGRAM_RETURN_IF_ERROR(
        WriteLayer(tensors, absl::StrCat(directory, "/", name), pool, written));
  }
  const nlohmann::ordered_json index = {
      {"metadata", {{"total_size", done_bytes}}}, {"weight_map", weight_map}};
  ENGRAM_RETURN_IF_ERROR(WriteFileAtomically(
      absl::StrCat(directory, "/model.safetensors.index.json"), index.dump(1)));
  ENGRAM_RETURN_IF_ERROR(WriteFileAtomically(
      absl::StrCat(directory, "/config.json"), ConfigToJson(model.config)));
  // Little-endian int32, as this machine stores them.
  const std::vector<int32_t> map = MadeUpTokenMap(model.config);
  const absl::Span<const std::byte> map_bytes = BytesOf(map);
  return WriteFileAtomically(
      absl::StrCat(directory, "/", kTokenMapFileName),
      {reinterpret_cast<const char*>(map_bytes.data()), map_bytes.size()});
}

}  // namespace engram::ctl
