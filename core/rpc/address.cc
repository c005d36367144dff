#include "core/rpc/address.h"

#include <sys/un.h>

#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

constexpr size_t kMaxUnixPathBytes = sizeof(sockaddr_un::sun_path) - 1;
constexpr uint32_t kMaxPort = 65535;

absl::Status Bad(absl::string_view address, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("address \"", address, "\": ", why,
                   " (an address is HOST:PORT, [IPV6]:PORT or unix:PATH)"));
}

absl::Status CheckPort(absl::string_view address, absl::string_view port) {
  uint32_t value = 0;
  const bool digits = !port.empty() && port.find_first_not_of("0123456789") ==
                                           absl::string_view::npos;
  if (!digits || !absl::SimpleAtoi(port, &value) || value > kMaxPort) {
    return Bad(address, absl::StrCat("port \"", port, "\" is not a number of 0",
                                     " .. ", kMaxPort));
  }
  return absl::OkStatus();
}

bool HasBlankOrControl(absl::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7F) return true;
  }
  return false;
}

}  // namespace

absl::Status CheckAddress(absl::string_view address) {
  if (HasBlankOrControl(address)) {
    return Bad(address, "has a blank or a control character");
  }
  absl::string_view rest = address;
  if (absl::ConsumePrefix(&rest, "unix:")) {
    if (rest.empty()) return Bad(address, "the path is empty");
    if (rest.size() > kMaxUnixPathBytes) {
      return Bad(address, absl::StrCat("a path of ", rest.size(),
                                       " bytes, the limit of the kernel is ",
                                       kMaxUnixPathBytes));
    }
    return absl::OkStatus();
  }
  const size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos) return Bad(address, "has no port");
  const absl::string_view host = rest.substr(0, colon);
  if (host.empty()) return Bad(address, "the host is empty");
  const bool bracketed =
      host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (!bracketed && host.find_first_of(":[]/") != absl::string_view::npos) {
    return Bad(address, "the host is neither a name nor an IPv4 address");
  }
  return CheckPort(address, rest.substr(colon + 1));
}

absl::StatusOr<std::vector<std::string>> ParseAddressList(
    absl::string_view list) {
  std::vector<std::string> addresses;
  absl::flat_hash_set<std::string> seen;
  for (const absl::string_view address : absl::StrSplit(list, ',')) {
    if (address.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("address list \"", list, "\" has an empty entry"));
    }
    ENGRAM_RETURN_IF_ERROR(CheckAddress(address));
    if (!seen.insert(std::string(address)).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "address list \"", list, "\" names ", address, " twice"));
    }
    addresses.emplace_back(address);
  }
  return addresses;
}

}  // namespace engram
