#include "tests/testing/checkpoint_maker.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/model/checkpoint.h"
#include "core/model/checkpoint_index.h"
#include "core/model/layout.h"
#include "core/model/number_formats.h"
#include "core/model/presets.h"
#include "core/model/safetensors.h"
#include "core/model/token_map.h"

namespace engram::test {
namespace {

constexpr uint64_t kBlock = 32;

EngramConfig MustPreset(absl::string_view name) {
  absl::StatusOr<EngramConfig> config = PresetConfig(name);
  ENGRAM_CHECK(config.ok());
  return *std::move(config);
}

std::vector<std::byte> Codes(std::mt19937_64& random, uint64_t count) {
  std::vector<std::byte> codes(count);
  for (std::byte& code : codes) {
    auto value = static_cast<uint8_t>(random());
    if ((value & 0x7F) == 0x7F) value ^= 0x08;  // not NaN
    code = std::byte{value};
  }
  return codes;
}

std::vector<std::byte> Scales(std::mt19937_64& random, uint64_t count,
                              uint8_t first, uint8_t kinds) {
  std::vector<std::byte> scales(count);
  for (std::byte& scale : scales) {
    scale = std::byte{static_cast<uint8_t>(first + random() % kinds)};
  }
  return scales;
}

// bf16 values within 0.75 .. 1.25.
std::vector<std::byte> NearOne(std::mt19937_64& random, uint64_t count) {
  std::vector<std::byte> bytes(2 * count);
  for (uint64_t i = 0; i < count; ++i) {
    const float value = 0.75F + static_cast<float>(random() % 512) / 1024.0F;
    const uint16_t bits = FloatToBf16(value);
    bytes[2 * i] = std::byte{static_cast<uint8_t>(bits)};
    bytes[2 * i + 1] = std::byte{static_cast<uint8_t>(bits >> 8)};
  }
  return bytes;
}

void WriteText(const std::string& path, absl::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  ENGRAM_CHECK(file.good());
}

}  // namespace

CheckpointMaker::CheckpointMaker(absl::string_view preset, uint64_t seed)
    : CheckpointMaker(MustPreset(preset), seed) {}

CheckpointMaker::CheckpointMaker(const EngramConfig& config, uint64_t seed)
    : config_(config) {
  const absl::StatusOr<EngramLayout> layout = EngramLayout::Create(config);
  ENGRAM_CHECK(layout.ok());
  std::mt19937_64 random(seed);
  const uint64_t in = config.wkv_in();
  const uint64_t out = config.wkv_out();
  const uint64_t width = config.head_dim;
  const uint64_t wkv_scale_rows = (out + kBlock - 1) / kBlock;
  const size_t file_count = layout->layers().size();
  for (size_t i = 0; i < file_count; ++i) {
    const LayerLayout& layer = layout->layers()[i];
    const uint64_t rows = layer.row_count;
    const std::string file =
        absl::StrCat("model-", absl::Dec(i + 1, absl::kZeroPad5), "-of-",
                     absl::Dec(file_count, absl::kZeroPad5), ".safetensors");
    const std::string prefix =
        absl::StrCat("layers.", ToInt(layer.layer_id), ".engram.");
    std::vector<std::byte> codes = Codes(random, rows * width);
    std::fill_n(codes.begin(), width, std::byte{0});
    Add(prefix + "embed.weight", "F8_E4M3", {rows, width}, std::move(codes),
        file);
    Add(prefix + "embed.scale", "F8_E8M0", {rows, width / kBlock},
        Scales(random, rows * (width / kBlock), 113, 7), file);
    Add(prefix + "wkv.weight", "F8_E4M3", {out, in}, Codes(random, out * in),
        file);
    Add(prefix + "wkv.scale", "F8_E8M0", {wkv_scale_rows, in / kBlock},
        Scales(random, wkv_scale_rows * (in / kBlock), 114, 4), file);
    for (const char* name : {"q_weight", "k_weight"}) {
      Add(prefix + name, "BF16", {config.hc_mult, config.dim},
          NearOne(random, uint64_t{config.hc_mult} * config.dim), file);
    }
  }
}

void CheckpointMaker::Add(std::string name, std::string dtype,
                          std::vector<uint64_t> shape,
                          std::vector<std::byte> bytes,
                          const std::string& file) {
  index_[name] = file;
  tensors_.push_back({std::move(name), std::move(dtype), std::move(shape),
                      std::move(bytes), file});
}

MadeTensor& CheckpointMaker::Tensor(absl::string_view name) {
  const auto found =
      std::find_if(tensors_.begin(), tensors_.end(),
                   [&](const MadeTensor& t) { return t.name == name; });
  ENGRAM_CHECK(found != tensors_.end());
  return *found;
}

void CheckpointMaker::Write(const std::string& dir) const {
  WriteText(absl::StrCat(dir, "/config.json"), ConfigToJson(config_));
  if (!index_.empty()) {
    const nlohmann::json index = {{"metadata", {{"total_size", 0}}},
                                  {"weight_map", index_}};
    WriteText(absl::StrCat(dir, "/", kIndexFileName), index.dump(1));
  }
  const std::vector<int32_t> map = MadeUpTokenMap(config_);
  WriteText(absl::StrCat(dir, "/", kTokenMapFileName),
            {reinterpret_cast<const char*>(map.data()), 4 * map.size()});

  std::set<std::string> files;
  for (const MadeTensor& tensor : tensors_) files.insert(tensor.file);
  for (const std::string& file : files) {
    std::vector<TensorSpec> specs;
    for (const MadeTensor& t : tensors_) {
      if (t.file == file) specs.push_back({t.name, t.dtype, t.shape});
    }
    auto writer = SafetensorsWriter::Create(absl::StrCat(dir, "/", file), specs,
                                            {{"format", "pt"}});
    ENGRAM_CHECK(writer.ok());
    for (const MadeTensor& t : tensors_) {
      if (t.file == file) ENGRAM_CHECK((*writer)->Append(t.bytes).ok());
    }
    ENGRAM_CHECK((*writer)->Finish().ok());
  }
}

absl::StatusOr<Manifest> WriteManifest(const std::string& dir,
                                       const BuildManifestOptions& options) {
  const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(dir);
  if (!checkpoint.ok()) return checkpoint.status();
  absl::StatusOr<Manifest> manifest =
      BuildManifest(*checkpoint, options, [](uint64_t, uint64_t) {});
  if (!manifest.ok()) return manifest;
  const absl::Status saved =
      manifest->Save(absl::StrCat(dir, "/", kManifestFileName));
  if (!saved.ok()) return saved;
  return manifest;
}

std::string SafetensorsBytes(absl::string_view header_json,
                             absl::string_view data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes.push_back(static_cast<char>(header_json.size() >> (8 * i)));
  }
  absl::StrAppend(&bytes, header_json, data);
  return bytes;
}

}  // namespace engram::test
