#include "table_server/gather/request_errors.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/wire/error_detail.h"

namespace engram {
namespace {

constexpr size_t kMaxEchoBytes = 64;  // a version id's length

// The beginning of what a caller sent, cut between two characters of UTF-8.
absl::string_view Shortened(absl::string_view text) {
  if (text.size() <= kMaxEchoBytes) return text;
  size_t size = kMaxEchoBytes;
  while (size > 0 && (static_cast<uint8_t>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

}  // namespace

absl::Status CheckVersion(absl::string_view version, const Manifest& manifest) {
  const std::string& served = manifest.version();
  if (version.empty() || version == served) return absl::OkStatus();
  const absl::string_view asked = Shortened(version);
  return MakeError(ErrorReason::kWrongTable,
                   absl::StrCat("table version ", asked, " was asked, ", served,
                                " is served"),
                   {{"asked", std::string(asked)}, {"served", served}});
}

absl::Status UnknownLayer(LayerId layer) {
  return MakeError(ErrorReason::kUnknownLayer,
                   absl::StrCat("layer ", ToInt(layer), " has no table here"),
                   {{"layer", absl::StrCat(ToInt(layer))}});
}

}  // namespace engram
