#include "core/membership/file_source.h"

#include "core/base/read_file.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/membership/member_file.h"

namespace engram {

absl::StatusOr<std::unique_ptr<MemberSource>> FileSource::Create(
    absl::string_view path) {
  if (path.empty()) {
    return absl::InvalidArgumentError("the path of the file is empty");
  }
  return std::make_unique<FileSource>(std::string(path));
}

absl::StatusOr<std::vector<Member>> FileSource::Read(absl::Time /*deadline*/) {
  ENGRAM_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(path_, kMaxMemberFileBytes));
  absl::StatusOr<std::vector<Member>> members = ParseMemberFile(text);
  if (!members.ok()) return Annotate(members.status(), path_);
  return members;
}

}  // namespace engram
