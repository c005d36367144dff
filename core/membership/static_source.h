#ifndef ENGRAM_CORE_MEMBERSHIP_STATIC_SOURCE_H_
#define ENGRAM_CORE_MEMBERSHIP_STATIC_SOURCE_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/membership/member_source.h"

namespace engram {

// A list that never changes.
class StaticSource final : public MemberSource {
 public:
  // `list`: "NAME=ADDRESS,NAME=ADDRESS,...". INVALID_ARGUMENT names the entry.
  static absl::StatusOr<std::unique_ptr<MemberSource>> Create(
      absl::string_view list);

  // `members`: of MakeMemberList.
  explicit StaticSource(std::vector<Member> members)
      : members_(std::move(members)) {}

  absl::StatusOr<std::vector<Member>> Read(absl::Time /*deadline*/) override {
    return members_;
  }
  bool absence_is_departure() const override { return true; }

 private:
  const std::vector<Member> members_;
};

}  // namespace engram

#endif  // ENGRAM_CORE_MEMBERSHIP_STATIC_SOURCE_H_
