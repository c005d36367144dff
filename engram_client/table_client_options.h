#ifndef ENGRAM_ENGRAM_CLIENT_TABLE_CLIENT_OPTIONS_H_
#define ENGRAM_ENGRAM_CLIENT_TABLE_CLIENT_OPTIONS_H_

#include "absl/status/status.h"
#include "engram_client/table_client.h"

namespace engram {

// INVALID_ARGUMENT: an option is not within its limits, which the message
// names. What `members` means is not looked at.
absl::Status CheckOptions(const TableClient::Options& options);

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_TABLE_CLIENT_OPTIONS_H_
