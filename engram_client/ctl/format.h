#ifndef ENGRAM_ENGRAM_CLIENT_CTL_FORMAT_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace engram::ctl {

// 1234567 -> "1,234,567"
std::string WithCommas(uint64_t number);

// First 12 digits of a table version id; "-" for none.
std::string ShortVersion(absl::string_view version);

// Text from another process as one line that cannot move the cursor.
std::string Printable(absl::string_view text);

// Names from other processes, the first few of many: "t0, t1 and 3 others".
std::string JoinNames(absl::Span<const std::string> names);

// A time to wait: "0 s", "95 s" and "12 min" are rounded up, "3.5 h" is not.
std::string ShortDuration(absl::Duration time);

// Rows of cells in aligned columns, two spaces apart, each line indented by
// two; rows may differ in length. The last cell of a line is not padded.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_FORMAT_H_
