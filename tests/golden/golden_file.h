#ifndef ENGRAM_TESTS_GOLDEN_GOLDEN_FILE_H_
#define ENGRAM_TESTS_GOLDEN_GOLDEN_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/safetensors.h"

namespace engram {

// One *.safetensors of tests/golden/data: inputs and every intermediate result
// of the oracle. Positions are [batch, length], sequences one after another.
class GoldenFile {
 public:
  // Ends the test program when the file cannot be read.
  explicit GoldenFile(const std::string& name);

  size_t batch() const { return batch_; }
  size_t length() const { return length_; }
  size_t positions() const { return batch_ * length_; }

  // The lengths of the steps that the oracle ran each sequence in.
  const std::vector<size_t>& chunks() const { return chunks_; }
  const std::vector<uint32_t>& tokens() const { return tokens_; }
  const std::vector<uint8_t>& mask() const { return mask_; }

  // [positions, columns] of one of `layer_count` layers.
  std::vector<RowId> RowIds(size_t layer_index, size_t layer_count) const;

  // "layers.N.NAME", and its dtype.
  template <typename T>
  std::vector<T> Layer(LayerId layer, const std::string& name) const {
    return Values<T>(LayerTensorName(layer, name));
  }
  std::string LayerDtype(LayerId layer, const std::string& name) const;

  template <typename T>
  std::vector<T> Values(const std::string& name) const {
    return *CopyTensor<T>(*file_.Find(name));
  }

 private:
  static std::string LayerTensorName(LayerId layer, const std::string& name);

  SafetensorsFile file_;
  size_t batch_ = 0;
  size_t length_ = 0;
  std::vector<size_t> chunks_;
  std::vector<uint32_t> tokens_;
  std::vector<uint8_t> mask_;
};

}  // namespace engram

#endif  // ENGRAM_TESTS_GOLDEN_GOLDEN_FILE_H_
