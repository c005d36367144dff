#ifndef ENGRAM_CORE_MEMBERSHIP_FILE_SOURCE_H_
#define ENGRAM_CORE_MEMBERSHIP_FILE_SOURCE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/membership/member_source.h"

namespace engram {

// A file that people write (member_file.h), of the local disk: a read of it
// heeds no deadline.
class FileSource final : public MemberSource {
 public:
  // INVALID_ARGUMENT: an empty path. The file need not be there yet.
  static absl::StatusOr<std::unique_ptr<MemberSource>> Create(
      absl::string_view path);

  explicit FileSource(std::string path) : path_(std::move(path)) {}

  absl::StatusOr<std::vector<Member>> Read(absl::Time deadline) override;
  bool absence_is_departure() const override { return true; }

 private:
  const std::string path_;
};

}  // namespace engram

#endif  // ENGRAM_CORE_MEMBERSHIP_FILE_SOURCE_H_
