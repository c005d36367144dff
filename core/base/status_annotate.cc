#include "core/base/status_annotate.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace engram {

absl::Status WithMessage(const absl::Status& status,
                         absl::string_view message) {
  absl::Status changed(status.code(), message);
  status.ForEachPayload(
      [&](absl::string_view type_url, const absl::Cord& payload) {
        changed.SetPayload(type_url, payload);
      });
  return changed;
}

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  return WithMessage(status, absl::StrCat(context, ": ", status.message()));
}

}  // namespace engram
