#ifndef ENGRAM_CORE_HTTP_HTTP_TRANSPORT_H_
#define ENGRAM_CORE_HTTP_HTTP_TRANSPORT_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/http/content_range.h"

namespace engram {

struct HttpRequest {
  std::string url;
  std::optional<ByteRange> range;  // not empty; none: the whole file
  std::string bearer_token;        // only for the host of `url`; empty: none
};

// What comes before the body of the last response, after redirects.
struct HttpHead {
  int status = 0;
  std::string content_range;  // empty: it has none
  std::string etag;
  std::optional<absl::Duration> retry_after;
};

// Takes a response as it comes, on the thread that asked for it. An error ends
// the transfer; each call may block, which slows the sender down.
class HttpReceiver {
 public:
  virtual ~HttpReceiver() = default;

  virtual absl::Status OnHead(const HttpHead& head) = 0;  // once, first
  virtual absl::Status OnBody(absl::Span<const std::byte> bytes) = 0;
  // Nothing came for a short while (some 100 ms).
  virtual absl::Status OnWait() = 0;
};

// Asks for one thing once. Thread safety: all methods may be called
// concurrently.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;

  // Blocks. OK: the response came whole, whatever its status. The receiver's
  // error as it is. UNAVAILABLE: no connection, or one that broke;
  // DEADLINE_EXCEEDED: next to nothing came for a while; FAILED_PRECONDITION:
  // trying again will not help (a certificate that is not trusted, too many
  // redirects, one from https to http). No message contains the token.
  virtual absl::Status Get(const HttpRequest& request,
                           HttpReceiver& receiver) = 0;
};

}  // namespace engram

#endif  // ENGRAM_CORE_HTTP_HTTP_TRANSPORT_H_
