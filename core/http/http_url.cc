#include "core/http/http_url.h"

#include <curl/curl.h>

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace engram {
namespace {

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

// One part of a URL; empty: it has none.
std::string Part(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return "";
  std::string copy(text);
  curl_free(text);
  return copy;
}

bool HasPart(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  const bool has = curl_url_get(url, part, &text, 0) == CURLUE_OK;
  curl_free(text);
  return has;
}

bool IsLoopbackHost(absl::string_view host) {
  return absl::EqualsIgnoreCase(host, "localhost") || host == "[::1]" ||
         (absl::StartsWith(host, "127.") &&
          host.find_first_not_of("0123456789.") == absl::string_view::npos);
}

}  // namespace

bool IsHttpUrl(absl::string_view text) {
  return absl::StartsWithIgnoreCase(text, "http://") ||
         absl::StartsWithIgnoreCase(text, "https://");
}

absl::StatusOr<HttpFolder> ParseHttpFolder(absl::string_view text) {
  const std::unique_ptr<CURLU, FreeUrl> url(curl_url());
  ENGRAM_CHECK(url != nullptr);
  if (!IsHttpUrl(text) ||
      curl_url_set(url.get(), CURLUPART_URL, std::string(text).c_str(), 0) !=
          CURLUE_OK) {
    return absl::InvalidArgumentError(
        "not a URL of the form https://HOST[:PORT]/PATH");
  }
  // None of these is quoted: one may be a secret.
  if (HasPart(url.get(), CURLUPART_USER) ||
      HasPart(url.get(), CURLUPART_PASSWORD) ||
      HasPart(url.get(), CURLUPART_QUERY) ||
      HasPart(url.get(), CURLUPART_FRAGMENT)) {
    return absl::InvalidArgumentError(
        "a URL with a user, password, query or fragment; a secret belongs in "
        "the token file");
  }
  HttpFolder folder;
  folder.url = Part(url.get(), CURLUPART_URL);
  while (absl::EndsWith(folder.url, "/")) folder.url.pop_back();
  folder.is_secure = Part(url.get(), CURLUPART_SCHEME) == "https";
  folder.is_loopback = IsLoopbackHost(Part(url.get(), CURLUPART_HOST));
  return folder;
}

std::string HttpFolder::UrlOf(absl::string_view name) const {
  char* const escaped =
      curl_easy_escape(nullptr, name.data(), static_cast<int>(name.size()));
  ENGRAM_CHECK(escaped != nullptr);
  std::string entry = absl::StrCat(url, "/", escaped);
  curl_free(escaped);
  return entry;
}

}  // namespace engram
