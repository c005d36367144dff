#ifndef ENGRAM_TESTS_TESTING_CHECKPOINT_MAKER_H_
#define ENGRAM_TESTS_TESTING_CHECKPOINT_MAKER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/config.h"
#include "core/model/manifest.h"

namespace engram::test {

struct MadeTensor {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  std::vector<std::byte> bytes;
  std::string file;  // name within the checkpoint
};

// A made-up checkpoint held in memory, sound as it is made, so that a test can
// spoil one thing before it is written. The content is like the oracle's:
// codes without NaN, scales 113 .. 119, row 0 all zeros; one file a layer.
class CheckpointMaker {
 public:
  explicit CheckpointMaker(const EngramConfig& config, uint64_t seed = 1);
  // PresetConfig(preset).
  explicit CheckpointMaker(absl::string_view preset, uint64_t seed = 1);

  EngramConfig& config() { return config_; }
  std::vector<MadeTensor>& tensors() { return tensors_; }
  // REQUIRES: there is one of this name, e.g. layers.1.engram.embed.weight.
  MadeTensor& Tensor(absl::string_view name);
  // Tensor name -> file name; empty: no index is written.
  std::map<std::string, std::string>& index() { return index_; }

  // config.json, index, safetensors files, token map.
  void Write(const std::string& dir) const;

 private:
  void Add(std::string name, std::string dtype, std::vector<uint64_t> shape,
           std::vector<std::byte> bytes, const std::string& file);

  EngramConfig config_;
  std::vector<MadeTensor> tensors_;
  std::map<std::string, std::string> index_;
};

// Writes the manifest of the checkpoint that is there, as engramctl does.
absl::StatusOr<Manifest> WriteManifest(
    const std::string& dir, const BuildManifestOptions& options = {});

// Bytes of a safetensors file with this header and data, sound or not.
std::string SafetensorsBytes(absl::string_view header_json,
                             absl::string_view data);

}  // namespace engram::test

#endif  // ENGRAM_TESTS_TESTING_CHECKPOINT_MAKER_H_
