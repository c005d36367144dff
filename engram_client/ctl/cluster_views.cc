#include "engram_client/ctl/cluster_views.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/rpc/address.h"
#include "engram_client/ctl/format.h"

namespace engram::ctl {
namespace {

using ViewMember = v1::ExchangeResponse::ViewMember;

SeenView ToView(const v1::ExchangeResponse& response) {
  SeenView view{.digest = response.view_digest(),
                .replicas = response.replicas()};
  for (const ViewMember& member : response.members()) {
    view.members.push_back(
        {member.name(), member.address(), member.capacity()});
  }
  std::sort(view.members.begin(), view.members.end(),
            [](const Member& a, const Member& b) { return a.name < b.name; });
  return view;
}

// Names in `members` that `others` lacks.
std::vector<std::string> Beyond(const std::vector<Member>& members,
                                const std::vector<Member>& others) {
  std::vector<std::string> names;
  for (const Member& member : members) {
    const bool known =
        std::any_of(others.begin(), others.end(),
                    [&](const Member& o) { return o.name == member.name; });
    if (!known) names.push_back(member.name);
  }
  return names;
}

std::vector<std::string> OtherCapacities(const std::vector<Member>& members,
                                         const std::vector<Member>& others) {
  std::vector<std::string> names;
  for (const Member& member : members) {
    for (const Member& other : others) {
      if (other.name != member.name || other.capacity == member.capacity) {
        continue;
      }
      names.push_back(absl::StrCat(Printable(member.name), " of capacity ",
                                   member.capacity, ", not ", other.capacity));
    }
  }
  return names;
}

// What sets `view` off from `usual`.
std::string Difference(const SeenView& view, const SeenView& usual) {
  std::vector<std::string> parts;
  const auto with = Beyond(view.members, usual.members);
  if (!with.empty()) parts.push_back("with " + JoinNames(with));
  const auto without = Beyond(usual.members, view.members);
  if (!without.empty()) parts.push_back("without " + JoinNames(without));
  if (view.replicas != usual.replicas) {
    parts.push_back(
        absl::StrCat("replicas ", view.replicas, ", not ", usual.replicas));
  }
  const auto capacities = OtherCapacities(view.members, usual.members);
  if (!capacities.empty()) parts.push_back(JoinNames(capacities));
  if (parts.empty()) parts.push_back("other layers");
  return absl::StrJoin(parts, "; ");
}

std::vector<std::string> Hearing(absl::Span<const ServerProbe> servers,
                                 const std::string& name, bool heard) {
  std::vector<std::string> names;
  for (const ServerProbe& server : servers) {
    if (!server.exchange.has_value() || server.name == name) continue;
    for (const ViewMember& member : server.exchange->members()) {
      if (member.name() != name || member.heard() != heard) continue;
      names.push_back(server.name);
    }
  }
  return names;
}

bool CanBeCalled(const std::string& address) {
  return CheckAddress(address).ok() && !absl::EndsWith(address, ":0");
}

}  // namespace

std::vector<SeenView> ViewsOf(absl::Span<const ServerProbe> servers) {
  std::vector<SeenView> views;
  for (const ServerProbe& server : servers) {
    if (!server.exchange.has_value()) continue;
    if (server.exchange->view_digest().empty()) continue;
    auto view =
        std::find_if(views.begin(), views.end(), [&](const SeenView& other) {
          return other.digest == server.exchange->view_digest();
        });
    if (view == views.end()) {
      view = views.insert(views.end(), ToView(*server.exchange));
    }
    view->servers.push_back(server.name);
  }
  std::stable_sort(views.begin(), views.end(),
                   [](const SeenView& a, const SeenView& b) {
                     return a.servers.size() > b.servers.size();
                   });
  return views;
}

std::string ViewDifferences(absl::Span<const SeenView> views) {
  if (views.size() < 2) return "";
  std::string text = "views differ: ";
  for (const SeenView& view : views) {
    const bool usual = &view == &views[0];
    absl::StrAppend(
        &text, usual ? "" : ", ", JoinNames(view.servers),
        view.servers.size() == 1 ? " sees " : " see ", view.members.size(),
        usual ? (view.members.size() == 1 ? " member" : " members") : "",
        usual ? "" : absl::StrCat(" (", Difference(view, views[0]), ")"));
  }
  return text;
}

std::vector<std::string> HeardBy(absl::Span<const ServerProbe> servers,
                                 const std::string& name) {
  return Hearing(servers, name, true);
}

std::vector<std::string> NotHeardBy(absl::Span<const ServerProbe> servers,
                                    const std::string& name) {
  return Hearing(servers, name, false);
}

std::vector<Member> MembersNotAsked(absl::Span<const ServerProbe> servers,
                                    size_t limit) {
  std::set<std::string> names;
  std::set<std::string> addresses;
  for (const ServerProbe& server : servers) {
    addresses.insert(server.address);
    if (server.error.empty()) names.insert(server.name);
  }
  std::vector<Member> found;
  const auto add = [&](const ViewMember& member) {
    if (found.size() >= limit || names.contains(member.name()) ||
        !CanBeCalled(member.address()) ||
        !addresses.insert(member.address()).second) {
      return;
    }
    found.push_back({member.name(), member.address(), member.capacity()});
  };
  for (const ServerProbe& server : servers) {
    if (!server.exchange.has_value()) continue;
    for (const ViewMember& member : server.exchange->members()) add(member);
    for (const ViewMember& other : server.exchange->others()) add(other);
  }
  return found;
}

std::vector<std::string> DepartedNotAsked(
    absl::Span<const ServerProbe> servers) {
  std::set<std::string> departed;
  for (const ServerProbe& server : servers) {
    if (!server.exchange.has_value()) continue;
    for (const v1::Departure& departure : server.exchange->departures()) {
      departed.insert(departure.server_name());
    }
  }
  for (const ServerProbe& server : servers) departed.erase(server.name);
  return {departed.begin(), departed.end()};
}

void NameUnreachable(std::vector<ServerProbe>& servers) {
  std::map<std::string, std::string> name_of;
  for (const ServerProbe& server : servers) {
    if (!server.exchange.has_value()) continue;
    for (const ViewMember& member : server.exchange->members()) {
      name_of.emplace(member.address(), member.name());
    }
  }
  for (ServerProbe& server : servers) {
    const auto name = name_of.find(server.address);
    if (!server.name.empty() || name == name_of.end()) continue;
    server.name = name->second;
  }
}

}  // namespace engram::ctl
