#ifndef ENGRAM_CORE_RPC_ADDRESS_H_
#define ENGRAM_CORE_RPC_ADDRESS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace engram {

// `host:port`, `[v6]:port` or `unix:PATH`. INVALID_ARGUMENT names the value:
// no port, a port above 65535, an empty host or path, a path above 107 bytes.
absl::Status CheckAddress(absl::string_view address);

// Addresses separated by commas; each checked, none empty, none twice.
absl::StatusOr<std::vector<std::string>> ParseAddressList(
    absl::string_view list);

}  // namespace engram

#endif  // ENGRAM_CORE_RPC_ADDRESS_H_
