#include "tests/golden/golden_file.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/check.h"

namespace engram {
namespace {

SafetensorsFile OpenGolden(const std::string& name) {
  auto file = SafetensorsFile::Open(
      absl::StrCat(ENGRAM_SOURCE_DIR "/tests/golden/data/", name));
  ENGRAM_CHECK(file.ok());
  return *std::move(file);
}

}  // namespace

GoldenFile::GoldenFile(const std::string& name) : file_(OpenGolden(name)) {
  const auto tokens = file_.Find("tokens");
  ENGRAM_CHECK(tokens.ok() && tokens->shape.size() == 2);
  batch_ = tokens->shape[0];
  length_ = tokens->shape[1];
  for (const int64_t token : Values<int64_t>("tokens")) {
    tokens_.push_back(static_cast<uint32_t>(token));
  }
  mask_ = Values<uint8_t>("mask");
  for (absl::string_view chunk :
       absl::StrSplit(file_.metadata().at("chunks"), ',')) {
    ENGRAM_CHECK(absl::SimpleAtoi(chunk, &chunks_.emplace_back()));
  }
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

}  // namespace engram
