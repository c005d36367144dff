#ifndef ENGRAM_CORE_HTTP_HTTP_URL_H_
#define ENGRAM_CORE_HTTP_HTTP_URL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace engram {

// "http://..." or "https://...": to be opened by URL, not as a path.
bool IsHttpUrl(absl::string_view text);

// The URL of a folder, as a user gives it.
struct HttpFolder {
  std::string url;           // without a slash at its end
  bool is_secure = false;    // https
  bool is_loopback = false;  // localhost, 127.*, ::1

  // Of an entry; the name is escaped.
  std::string UrlOf(absl::string_view name) const;
};

// INVALID_ARGUMENT: not an http or https URL with a host, or one with a user,
// a password, a query or a fragment: URLs are logged, secrets must not be.
absl::StatusOr<HttpFolder> ParseHttpFolder(absl::string_view url);

}  // namespace engram

#endif  // ENGRAM_CORE_HTTP_HTTP_URL_H_
