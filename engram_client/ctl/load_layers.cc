#include "engram_client/ctl/load_layers.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace engram::ctl {

absl::StatusOr<std::vector<LayerId>> ChooseLayers(
    absl::Span<const LayerId> all, absl::Span<const LayerId> wanted) {
  const absl::Span<const LayerId> chosen = wanted.empty() ? all : wanted;
  for (const LayerId layer : chosen) {
    if (std::count(all.begin(), all.end(), layer) == 0) {
      return absl::NotFoundError(absl::StrCat(
          "the table has no layer ", ToInt(layer), "; its layers are ",
          absl::StrJoin(all, ", ", [](std::string* out, LayerId known) {
            absl::StrAppend(out, ToInt(known));
          })));
    }
    if (std::count(chosen.begin(), chosen.end(), layer) > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--layers has layer ", ToInt(layer), " twice"));
    }
  }
  return std::vector<LayerId>(chosen.begin(), chosen.end());
}

}  // namespace engram::ctl
