#include "engram_client/table_client_options.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/rpc/address.h"

namespace engram {
namespace {

constexpr size_t kMaxPollThreads = 64;
constexpr absl::Duration kMaxSpin = absl::Milliseconds(1);
constexpr size_t kMaxServers = 4096;

absl::Status CheckAddresses(const std::vector<std::string>& addresses) {
  absl::flat_hash_set<absl::string_view> seen;
  for (const std::string& address : addresses) {
    ENGRAM_RETURN_IF_ERROR(CheckAddress(address));
    if (!seen.insert(address).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("table server address ", address, " is listed twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckServers(const TableClient::Options& options) {
  if (options.addresses.empty() && options.members.empty()) {
    return absl::InvalidArgumentError("no table server addresses");
  }
  if (!options.addresses.empty() && !options.members.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table servers are given by addresses (", options.addresses[0],
        ", ...) and by members (", options.members, "): give one of both"));
  }
  if (options.max_servers == 0 || options.max_servers > kMaxServers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_servers is ", options.max_servers, ", not 1 .. ", kMaxServers));
  }
  if (options.addresses.size() > options.max_servers) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.addresses.size(), " table server addresses, max_servers is ",
        options.max_servers));
  }
  return CheckAddresses(options.addresses);
}

}  // namespace

absl::Status CheckOptions(const TableClient::Options& options) {
  ENGRAM_RETURN_IF_ERROR(CheckServers(options));
  if (options.max_rows_per_call == 0 || options.max_gathers_in_flight == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_rows_per_call is ", options.max_rows_per_call,
                     " and max_gathers_in_flight is ",
                     options.max_gathers_in_flight, ", both must be above 0"));
  }
  if (options.poll_threads > kMaxPollThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("poll_threads is ", options.poll_threads,
                     ", the limit is ", kMaxPollThreads));
  }
  if (options.first_hedge_delay <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "first_hedge_delay is ",
        absl::FormatDuration(options.first_hedge_delay), ", not above 0"));
  }
  if (options.spin < absl::ZeroDuration() || options.spin > kMaxSpin) {
    return absl::InvalidArgumentError(
        absl::StrCat("spin is ", absl::FormatDuration(options.spin),
                     ", not 0 .. ", absl::FormatDuration(kMaxSpin)));
  }
  return absl::OkStatus();
}

}  // namespace engram
