#include "core/http/open_http_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/http/bearer_token.h"
#include "core/http/curl_transport.h"

namespace engram {

absl::StatusOr<std::unique_ptr<HttpReader>> OpenHttpReader(
    const HttpFolder& folder, const HttpAccess& access) {
  std::unique_ptr<BearerToken> token;
  if (!access.token_file.empty()) {
    if (!folder.is_secure && !folder.is_loopback) {
      return absl::InvalidArgumentError(
          absl::StrCat("a token is not sent over plain http: ", folder.url,
                       " is neither https nor on this machine"));
    }
    ENGRAM_ASSIGN_OR_RETURN(token, BearerToken::Open(access.token_file));
  }
  auto transport = std::make_unique<CurlTransport>(
      CurlTransport::Options{.ca_file = access.ca_file});
  return std::make_unique<HttpReader>(std::move(transport), std::move(token),
                                      HttpReader::Options());
}

}  // namespace engram
