#ifndef ENGRAM_TESTS_TESTING_GOLDEN_FILE_H_
#define ENGRAM_TESTS_TESTING_GOLDEN_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute/hash/ngram_hash.h"
#include "core/base/ids.h"
#include "core/model/safetensors.h"

namespace engram::test {

// A step's share of one sequence of a golden file, and where its first
// position stands in the file.
struct GoldenChunk {
  TokenChunk chunk;
  size_t first_position = 0;
};

// One *.safetensors of tests/golden/data: inputs and every intermediate result
// of the oracle. Positions are [batch, length], sequences one after another.
class GoldenFile {
 public:
  // The reader's errors; INVALID_ARGUMENT: not a file of the oracle.
  static absl::StatusOr<GoldenFile> Open(const std::string& path);

  size_t batch() const { return batch_; }
  size_t length() const { return length_; }
  size_t positions() const { return batch_ * length_; }

  // The lengths of the steps that the oracle ran each sequence in.
  const std::vector<size_t>& chunks() const { return chunks_; }
  const std::vector<uint32_t>& tokens() const { return tokens_; }
  const std::vector<uint8_t>& mask() const { return mask_; }

  // The splits that must all give the same: the oracle's, one chunk, chunks
  // of one token.
  std::vector<std::vector<size_t>> Splits() const;
  // Every sequence in chunks of these lengths, with the lookback that a caller
  // would send. Spans are this object's.
  std::vector<GoldenChunk> Chunks(const std::vector<size_t>& lengths,
                                  size_t max_lookback) const;
  // Row ids [positions, columns] of a layer, hashed in such chunks.
  absl::StatusOr<std::vector<RowId>> Hash(const NgramHasher& hasher,
                                          size_t layer_index,
                                          const std::vector<size_t>& lengths,
                                          size_t max_lookback) const;

  // [positions, columns] of one of `layer_count` layers.
  std::vector<RowId> RowIds(size_t layer_index, size_t layer_count) const;

  // "layers.N.NAME", and its dtype. Ends the program if it is not there.
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
  explicit GoldenFile(SafetensorsFile file) : file_(std::move(file)) {}
  static std::string LayerTensorName(LayerId layer, const std::string& name);

  SafetensorsFile file_;
  size_t batch_ = 0;
  size_t length_ = 0;
  std::vector<size_t> chunks_;
  std::vector<uint32_t> tokens_;
  std::vector<uint8_t> mask_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_TESTING_GOLDEN_FILE_H_
