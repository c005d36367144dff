#include "tests/testing/golden_file.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace engram::test {

absl::StatusOr<GoldenFile> GoldenFile::Open(const std::string& path) {
  ENGRAM_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
  ENGRAM_ASSIGN_OR_RETURN(const TensorView tokens, file.Find("tokens"));
  ENGRAM_ASSIGN_OR_RETURN(const TensorView mask, file.Find("mask"));
  const auto chunks = file.metadata().find("chunks");
  if (tokens.shape.size() != 2 || chunks == file.metadata().end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": not a golden file: no [batch, length] of tokens "
                     "or no chunks in the metadata"));
  }
  GoldenFile golden(std::move(file));
  golden.batch_ = tokens.shape[0];
  golden.length_ = tokens.shape[1];
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                          CopyTensor<int64_t>(tokens));
  golden.tokens_.assign(ids.begin(), ids.end());
  ENGRAM_ASSIGN_OR_RETURN(golden.mask_, CopyTensor<uint8_t>(mask));
  for (absl::string_view chunk : absl::StrSplit(chunks->second, ',')) {
    if (!absl::SimpleAtoi(chunk, &golden.chunks_.emplace_back())) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": chunk '", chunk, "' is no number"));
    }
  }
  return golden;
}

std::vector<std::vector<size_t>> GoldenFile::Splits() const {
  return {chunks_, {length_}, std::vector<size_t>(length_, 1)};
}

std::vector<GoldenChunk> GoldenFile::Chunks(const std::vector<size_t>& lengths,
                                            size_t max_lookback) const {
  ENGRAM_CHECK(std::accumulate(lengths.begin(), lengths.end(), size_t{0}) ==
               length_);
  const auto tokens = absl::MakeConstSpan(tokens_);
  const auto mask = absl::MakeConstSpan(mask_);
  std::vector<GoldenChunk> chunks;
  for (size_t b = 0; b < batch_; ++b) {
    size_t start = 0;
    for (const size_t length : lengths) {
      const size_t back = std::min(start, max_lookback);
      const size_t at = b * length_ + start;
      TokenChunk chunk;
      chunk.start_position = start;
      chunk.tokens = tokens.subspan(at, length);
      chunk.mask = mask.subspan(at, length);
      chunk.lookback = tokens.subspan(at - back, back);
      chunk.lookback_mask = mask.subspan(at - back, back);
      chunks.push_back({chunk, at});
      start += length;
    }
  }
  return chunks;
}

absl::StatusOr<std::vector<RowId>> GoldenFile::Hash(
    const NgramHasher& hasher, size_t layer_index,
    const std::vector<size_t>& lengths, size_t max_lookback) const {
  const size_t columns = hasher.columns();
  std::vector<RowId> ids(positions() * columns);
  for (const GoldenChunk& part : Chunks(lengths, max_lookback)) {
    ENGRAM_RETURN_IF_ERROR(hasher.Check(part.chunk));
    hasher.Hash(
        layer_index, part.chunk,
        absl::MakeSpan(ids).subspan(part.first_position * columns,
                                    part.chunk.tokens.size() * columns));
  }
  return ids;
}

std::vector<RowId> GoldenFile::RowIds(size_t layer_index,
                                      size_t layer_count) const {
  const auto all = Values<int64_t>("hash_ids");
  const size_t columns = all.size() / positions() / layer_count;
  std::vector<RowId> ids;
  for (size_t p = 0; p < positions(); ++p) {
    const auto* from = &all[(p * layer_count + layer_index) * columns];
    ids.insert(ids.end(), from, from + columns);
  }
  return ids;
}

std::string GoldenFile::LayerDtype(LayerId layer,
                                   const std::string& name) const {
  return file_.Find(LayerTensorName(layer, name))->dtype;
}

std::string GoldenFile::LayerTensorName(LayerId layer,
                                        const std::string& name) {
  return absl::StrCat("layers.", ToInt(layer), ".", name);
}

}  // namespace engram::test
