#ifndef ENGRAM_CORE_BASE_STATUS_ANNOTATE_H_
#define ENGRAM_CORE_BASE_STATUS_ANNOTATE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace engram {

// `status` with another message; code and payloads are kept. OK stays OK.
absl::Status WithMessage(const absl::Status& status, absl::string_view message);

// `status` with "`context`: " before its message; code and payloads are kept.
// OK stays OK.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_STATUS_ANNOTATE_H_
