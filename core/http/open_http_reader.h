#ifndef ENGRAM_CORE_HTTP_OPEN_HTTP_READER_H_
#define ENGRAM_CORE_HTTP_OPEN_HTTP_READER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/http/http_reader.h"
#include "core/http/http_url.h"

namespace engram {

struct HttpAccess {
  std::string token_file;  // empty: no token
  std::string ca_file;     // PEM; empty: the system's
};

// A reader over libcurl for files of `folder`. INVALID_ARGUMENT: a token that
// would go over plain http to another machine. Else the errors of
// BearerToken::Open.
absl::StatusOr<std::unique_ptr<HttpReader>> OpenHttpReader(
    const HttpFolder& folder, const HttpAccess& access);

}  // namespace engram

#endif  // ENGRAM_CORE_HTTP_OPEN_HTTP_READER_H_
