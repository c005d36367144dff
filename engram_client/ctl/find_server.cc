#include "engram_client/ctl/find_server.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engram_client/ctl/cluster_views.h"
#include "engram_client/ctl/format.h"

namespace engram::ctl {
namespace {

absl::Status NotFound(absl::Span<const ServerProbe> servers,
                      const std::string& name) {
  std::vector<std::string> names;
  std::vector<std::string> silent;
  for (const ServerProbe& server : servers) {
    if (server.error.empty()) {
      names.push_back(server.name);
    } else {
      silent.push_back(
          absl::StrCat(server.address, " (", Printable(server.error), ")"));
    }
  }
  const std::vector<std::string> departed = DepartedNotAsked(servers);
  if (std::find(departed.begin(), departed.end(), name) != departed.end()) {
    return absl::NotFoundError(absl::StrCat(
        name,
        " leaves or has left, and is no member any more: give its own "
        "address"));
  }
  std::sort(names.begin(), names.end());
  return absl::NotFoundError(absl::StrCat(
      "no server is named ", name,
      "; found: ", names.empty() ? "none" : JoinNames(names),
      silent.empty() ? "" : "; no answer from ", JoinNames(silent)));
}

}  // namespace

absl::StatusOr<ServerProbe> FindServer(absl::Span<const ServerProbe> servers,
                                       const std::string& name) {
  const ServerProbe* found = nullptr;
  const ServerProbe* silent = nullptr;
  for (const ServerProbe& server : servers) {
    if (server.name != name) continue;
    if (!server.error.empty()) {
      silent = &server;
      continue;
    }
    if (found != nullptr && found->instance_id != server.instance_id) {
      return absl::FailedPreconditionError(
          absl::StrCat("two servers are named ", name, ": at ", found->address,
                       " and at ", server.address));
    }
    found = &server;
  }
  if (found == nullptr && silent != nullptr) {
    return absl::UnavailableError(
        absl::StrCat(name, " at ", silent->address,
                     " does not answer: ", Printable(silent->error)));
  }
  if (found == nullptr) return NotFound(servers, name);
  if (!found->exchange.has_value()) {
    return absl::UnimplementedError(
        absl::StrCat(name, " at ", found->address,
                     " is of a release that knows of no cluster"));
  }
  return *found;
}

}  // namespace engram::ctl
