#include "core/membership/dns_source.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

constexpr size_t kLeftOutInLog = 8;

std::string TextOf(const SrvRecord& record) {
  return absl::StrCat(record.target, ":", record.port);
}

std::string AddressOf(const std::string& ip, uint16_t port) {
  const bool is_v6 = ip.find(':') != std::string::npos;
  return is_v6 ? absl::StrCat("[", ip, "]:", port)
               : absl::StrCat(ip, ":", port);
}

// `name`: of its server.
absl::Status CheckRecord(const SrvRecord& record, const std::string& name) {
  ENGRAM_RETURN_IF_ERROR(Annotate(CheckServerName(name),
                                  absl::StrCat("SRV record ", TextOf(record))));
  if (record.port != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("SRV record ", TextOf(record), " has no port"));
}

}  // namespace

absl::StatusOr<std::vector<SrvServer>> NameSrvServers(
    const std::vector<SrvRecord>& records) {
  std::vector<SrvServer> servers;
  absl::flat_hash_map<std::string, const SrvRecord*> by_name;
  for (const SrvRecord& record : records) {
    if (record.target.empty() || record.target == ".") continue;
    std::string name = absl::AsciiStrToLower(
        absl::string_view(record.target).substr(0, record.target.find('.')));
    ENGRAM_RETURN_IF_ERROR(CheckRecord(record, name));
    const auto [known, is_new] = by_name.try_emplace(name, &record);
    if (is_new) {
      servers.push_back({std::move(name), record});
    } else if (*known->second != record) {
      return absl::InvalidArgumentError(
          absl::StrCat("SRV records ", TextOf(*known->second), " and ",
                       TextOf(record), " name one server, ", name));
    }
  }
  if (servers.empty()) {
    return absl::NotFoundError("the SRV records say that there is no server");
  }
  return servers;
}

absl::StatusOr<std::unique_ptr<MemberSource>> DnsSource::Create(
    absl::string_view spec) {
  const size_t at = spec.find('@');
  const absl::string_view name = spec.substr(0, at);
  absl::string_view server;
  ENGRAM_RETURN_IF_ERROR(Annotate(CheckServerName(name), "DNS name"));
  if (at != absl::string_view::npos) {
    server = spec.substr(at + 1);
    ENGRAM_RETURN_IF_ERROR(DnsClient::CheckServer(server));
  }
  return std::unique_ptr<MemberSource>(new DnsSource(name, server));
}

absl::StatusOr<std::vector<Member>> DnsSource::Read(absl::Time deadline) {
  ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<DnsClient> client,
                          DnsClient::Create(server_));
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<SrvRecord> records,
                          client->LookUpSrv(name_, deadline));
  absl::StatusOr<std::vector<SrvServer>> servers = NameSrvServers(records);
  if (!servers.ok()) return Annotate(servers.status(), name_);

  std::vector<std::string> targets;
  for (const SrvServer& server : *servers) {
    targets.push_back(server.record.target);
  }
  const std::vector<absl::StatusOr<std::string>> ips =
      client->LookUpAddresses(targets, deadline);
  std::vector<Member> members;
  std::vector<std::string> left_out;
  for (size_t i = 0; i < ips.size(); ++i) {
    const SrvServer& server = (*servers)[i];
    if (ips[i].ok()) {
      members.push_back({server.name, AddressOf(*ips[i], server.record.port)});
    } else {
      left_out.emplace_back(ips[i].status().message());
    }
  }
  LogLeftOut(left_out);
  if (members.empty()) {
    return absl::UnavailableError(
        absl::StrCat("none of the ", ips.size(), " servers of ", name_,
                     " has an address: ", left_out.front()));
  }
  absl::StatusOr<std::vector<Member>> list = MakeMemberList(std::move(members));
  if (!list.ok()) return Annotate(list.status(), name_);
  return list;
}

void DnsSource::LogLeftOut(const std::vector<std::string>& left_out) {
  const std::string all = absl::StrJoin(left_out, "; ");
  {
    MutexLock lock(&mutex_);
    if (all == last_left_out_) return;
    last_left_out_ = all;
  }
  if (left_out.empty()) {
    spdlog::info("every server of {} has an address again", name_);
    return;
  }
  const size_t shown = std::min(left_out.size(), kLeftOutInLog);
  spdlog::warn("{} servers of {} are left out: {}{}", left_out.size(), name_,
               absl::StrJoin(left_out.begin(), left_out.begin() + shown, "; "),
               shown < left_out.size() ? " ..." : "");
}

}  // namespace engram
