#include "core/membership/member_source.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_annotate.h"
#include "core/membership/dns_source.h"
#include "core/membership/file_source.h"
#include "core/membership/static_source.h"

namespace engram {
namespace {

absl::StatusOr<std::unique_ptr<MemberSource>> ParseScheme(
    absl::string_view spec) {
  if (absl::ConsumePrefix(&spec, "static:")) return StaticSource::Create(spec);
  if (absl::ConsumePrefix(&spec, "file:")) return FileSource::Create(spec);
  if (absl::ConsumePrefix(&spec, "dns:")) return DnsSource::Create(spec);
  return absl::InvalidArgumentError(
      "an unknown scheme: it has to be static:NAME=ADDRESS,..., file:PATH or "
      "dns:NAME[@IP:PORT]");
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemberSource>> MemberSource::Parse(
    absl::string_view spec) {
  absl::StatusOr<std::unique_ptr<MemberSource>> source = ParseScheme(spec);
  if (!source.ok()) {
    return Annotate(source.status(), absl::StrCat("members \"", spec, "\""));
  }
  return source;
}

}  // namespace engram
