#ifndef ENGRAM_ENGRAM_CLIENT_CTL_TABLE_ADDRESSES_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_TABLE_ADDRESSES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace engram::ctl {

// What every --tables takes, for its help text.
inline constexpr char kTablesHelp[] =
    "table servers: addresses separated by commas, or static:NAME=ADDRESS,..., "
    "file:PATH, dns:NAME[@IP:PORT]";

// The addresses that `tables` gives now. INVALID_ARGUMENT and the errors of
// MemberSource::Read; no address is empty, none stands twice. Blocks, at most
// until `deadline`.
absl::StatusOr<std::vector<std::string>> TableAddresses(
    absl::string_view tables, absl::Time deadline);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_TABLE_ADDRESSES_H_
