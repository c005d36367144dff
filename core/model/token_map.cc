#include "core/model/token_map.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/mapped_file.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"

namespace engram {

static_assert(std::endian::native == std::endian::little,
              "the stored map is copied as it stands");

absl::StatusOr<TokenMap> TokenMap::Create(std::vector<int32_t> map,
                                          const EngramConfig& config) {
  const auto invalid = [](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat("token map: ", parts...));
  };
  if (map.size() != config.vocab_size) {
    return invalid(map.size(), " entries, vocab_size is ", config.vocab_size);
  }
  if (config.pad_id >= map.size()) {
    return invalid("pad id ", config.pad_id, " is not below vocab_size ",
                   config.vocab_size);
  }
  const uint32_t compressed = config.compressed_vocab_size;
  std::vector<bool> used(compressed);
  for (size_t token = 0; token < map.size(); ++token) {
    const int32_t id = map[token];
    if (id < 0 || static_cast<uint32_t>(id) >= compressed) {
      return invalid("token ", token, " maps to ", id,
                     ", engram_compressed_vocab_size is ", compressed);
    }
    used[static_cast<size_t>(id)] = true;
  }
  const auto unused = std::find(used.begin(), used.end(), false);
  if (unused != used.end()) {
    return invalid("no token maps to ", unused - used.begin(),
                   ", engram_compressed_vocab_size is ", compressed,
                   ": the map belongs to another size");
  }
  TokenMap result;
  result.pad_ = map[config.pad_id];
  result.map_ = std::move(map);
  return result;
}

absl::StatusOr<TokenMap> TokenMap::Load(const std::string& path,
                                        const EngramConfig& config) {
  ENGRAM_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                          MappedFile::Open(path));
  const absl::Span<const std::byte> bytes = file->bytes();
  const uint64_t wanted_bytes = uint64_t{config.vocab_size} * sizeof(int32_t);
  if (bytes.size() != wanted_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " has ", bytes.size(), " bytes, a token map of vocab_size ",
        config.vocab_size, " has ", wanted_bytes));
  }
  std::vector<int32_t> map(config.vocab_size);
  ENGRAM_RETURN_IF_ERROR(file->Guarded(
      [&] { std::memcpy(map.data(), bytes.data(), bytes.size()); }));
  absl::StatusOr<TokenMap> result = Create(std::move(map), config);
  if (!result.ok()) return Annotate(result.status(), path);
  return result;
}

}  // namespace engram
