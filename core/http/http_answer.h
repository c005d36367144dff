#ifndef ENGRAM_CORE_HTTP_HTTP_ANSWER_H_
#define ENGRAM_CORE_HTTP_HTTP_ANSWER_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/http/content_range.h"
#include "core/http/http_counts.h"
#include "core/http/http_transport.h"

namespace engram {

// What is to be done about a request that failed.
struct HttpVerdict {
  absl::Status status;
  HttpFailure why = HttpFailure::kConnection;
  bool retry = false;
  std::optional<absl::Duration> retry_after;  // as the server asks
};

// Judges an answer by what comes before its body. None: its body is what was
// asked for: all of a file, or the beginning of `wanted`, of a file with
// `file_bytes` (0: any). Pure.
//
// PERMISSION_DENIED: 401, 403; NOT_FOUND: 404, 410; UNAVAILABLE, to be tried
// again: 408, 425, 429, 5xx; FAILED_PRECONDITION: the whole file for a range,
// and any other status; DATA_LOSS: the file has another size; UNAVAILABLE:
// another range, or one that cannot be read.
std::optional<HttpVerdict> JudgeHead(const HttpHead& head,
                                     const std::optional<ByteRange>& wanted,
                                     uint64_t file_bytes);

// Judges what a transport says.
HttpVerdict JudgeTransport(const absl::Status& status);

}  // namespace engram

#endif  // ENGRAM_CORE_HTTP_HTTP_ANSWER_H_
