#include "core/wire/gather_crc.h"

#include <bit>

#include "core/wire/crc32c.h"

namespace engram {
namespace {

static_assert(std::endian::native == std::endian::little,
              "row ids are summed as they lie in memory");

template <typename T>
absl::Span<const std::byte> AsBytes(absl::Span<const T> values) {
  return {reinterpret_cast<const std::byte*>(values.data()),
          values.size() * sizeof(T)};
}

}  // namespace

GatherCrc::GatherCrc(absl::string_view version)
    : value_(ExtendCrc32c(
          0, AsBytes(absl::MakeConstSpan(version.data(), version.size())))) {}

void GatherCrc::AddLayer(LayerId layer, absl::Span<const RowId> row_ids) {
  const uint32_t id = ToInt(layer);
  value_ = ExtendCrc32c(value_, AsBytes(absl::MakeConstSpan(&id, 1)));
  value_ = ExtendCrc32c(value_, AsBytes(row_ids));
}

void GatherCrc::AddRows(absl::Span<const std::byte> rows) {
  value_ = ExtendCrc32c(value_, rows);
}

}  // namespace engram
