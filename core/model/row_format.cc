#include "core/model/row_format.h"

#include "absl/strings/str_cat.h"

namespace engram {
namespace {

constexpr uint64_t kMaxRowBytes = uint64_t{1} << 20;

}  // namespace

absl::StatusOr<RowFormat> RowFormat::Create(const std::string& code_dtype,
                                            const std::string& scale_dtype,
                                            uint64_t width,
                                            uint64_t block_size) {
  const auto invalid = [](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat("row format: ", parts...));
  };
  if (code_dtype != "F8_E4M3") {
    return invalid("codes of ", code_dtype, ", this build decodes F8_E4M3");
  }
  if (scale_dtype != "F8_E8M0") {
    return invalid("scales of ", scale_dtype, ", this build decodes F8_E8M0");
  }
  if (width == 0 || width > kMaxRowBytes) {
    return invalid("width ", width, " is not within 1 .. ", kMaxRowBytes);
  }
  if (block_size == 0 || width % block_size != 0) {
    return invalid("block size ", block_size, " does not divide width ", width);
  }
  if (width + width / block_size > kMaxRowBytes) {
    return invalid("a row of ", width + width / block_size,
                   " bytes, the limit is ", kMaxRowBytes);
  }
  RowFormat format;
  format.width = static_cast<uint32_t>(width);
  format.block_size = static_cast<uint32_t>(block_size);
  return format;
}

}  // namespace engram
