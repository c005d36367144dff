#ifndef ENGRAM_CORE_HTTP_HTTP_READER_H_
#define ENGRAM_CORE_HTTP_HTTP_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/backoff.h"
#include "core/http/bearer_token.h"
#include "core/http/content_range.h"
#include "core/http/http_counts.h"
#include "core/http/http_transport.h"

namespace engram {

// Bytes of a file on a server.
struct HttpRange {
  std::string url;
  ByteRange bytes;          // not empty
  uint64_t file_bytes = 0;  // that the file must have; 0: not known yet
};

// Files and byte ranges over HTTP. What breaks is taken up where it stopped,
// after a pause that grows and is jittered or is the server's Retry-After;
// attempts are bounded. Messages name the URL and never the token.
//
// Thread safety: all methods may be called concurrently.
class HttpReader {
 public:
  struct Options {
    // In a row that bring less than min_progress_bytes each.
    uint32_t max_attempts = 6;
    uint64_t min_progress_bytes = 64 << 10;
    BackoffOptions pause = {.first = absl::Milliseconds(200),
                            .longest = absl::Seconds(10)};
    absl::Duration longest_retry_after = absl::Minutes(1);
    // How pauses pass, in steps between which the caller may cancel.
    std::function<void(absl::Duration)> sleep = absl::SleepFor;
  };
  struct FileFacts {
    uint64_t file_bytes = 0;
    std::string etag;  // empty: the server gives none
  };
  // Takes bytes that belong at `offset` of what is read. Offsets ascend without
  // gaps, but may go back to 0 once: when the file was changed meanwhile.
  using Taker = absl::FunctionRef<absl::Status(uint64_t offset,
                                               absl::Span<const std::byte>)>;
  // Called while nothing comes; its error ends the read.
  using Waiter = absl::FunctionRef<absl::Status()>;

  // `token` may be null.
  HttpReader(std::unique_ptr<HttpTransport> transport,
             std::unique_ptr<BearerToken> token, Options options);

  // All of `range`. The errors of `take` and `wait` as they are; else those of
  // JudgeHead and JudgeTransport.
  absl::StatusOr<FileFacts> ReadRange(const HttpRange& range, Taker take,
                                      Waiter wait);

  // A whole small file. INVALID_ARGUMENT: it has more than `max_bytes`.
  absl::StatusOr<std::string> ReadFile(const std::string& url, size_t max_bytes,
                                       Waiter wait);

  HttpCounts counts() const { return counters_.Read(); }

 private:
  class Transfer;

  absl::Status Run(Transfer& transfer, Waiter wait);
  std::string TokenNow();
  absl::Status Pause(absl::Duration pause, Waiter wait);

  const Options options_;
  const std::unique_ptr<HttpTransport> transport_;
  const std::unique_ptr<BearerToken> token_;
  HttpCounters counters_;
};

}  // namespace engram

#endif  // ENGRAM_CORE_HTTP_HTTP_READER_H_
