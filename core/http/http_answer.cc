#include "core/http/http_answer.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace engram {
namespace {

std::string Text(const ByteRange& range) {
  return absl::StrCat(range.begin, "-", range.end - 1);
}

HttpVerdict Refused(absl::Status status, HttpFailure why) {
  return {std::move(status), why, /*retry=*/false, std::nullopt};
}

HttpVerdict Again(const HttpHead& head, HttpFailure why) {
  return {absl::UnavailableError(absl::StrCat("HTTP status ", head.status)),
          why, /*retry=*/true, head.retry_after};
}

std::optional<HttpVerdict> JudgeRange(const HttpHead& head,
                                      const ByteRange& wanted,
                                      uint64_t file_bytes) {
  const absl::StatusOr<ContentRange> sent =
      ParseContentRange(head.content_range);
  if (!sent.ok()) {
    return HttpVerdict{absl::UnavailableError(sent.status().message()),
                       HttpFailure::kWrongRange, /*retry=*/true, std::nullopt};
  }
  if (file_bytes > 0 && sent->file_bytes != file_bytes) {
    return Refused(absl::DataLossError(absl::StrCat(
                       "the file has ", sent->file_bytes, " bytes, it had ",
                       file_bytes, ": it was changed")),
                   HttpFailure::kWrongRange);
  }
  // Fewer bytes than asked for are a beginning.
  if (sent->range.begin == wanted.begin && sent->range.end <= wanted.end) {
    return std::nullopt;
  }
  return HttpVerdict{
      absl::UnavailableError(absl::StrCat("bytes ", Text(sent->range),
                                          " came for bytes ", Text(wanted))),
      HttpFailure::kWrongRange, /*retry=*/true, std::nullopt};
}

}  // namespace

std::optional<HttpVerdict> JudgeHead(const HttpHead& head,
                                     const std::optional<ByteRange>& wanted,
                                     uint64_t file_bytes) {
  switch (head.status) {
    case 206:
      if (wanted.has_value()) return JudgeRange(head, *wanted, file_bytes);
      break;
    case 200:
      if (!wanted.has_value()) return std::nullopt;
      return Refused(
          absl::FailedPreconditionError(absl::StrCat(
              "the server ignores ranges: it offers the whole file for bytes ",
              Text(*wanted))),
          HttpFailure::kNoRanges);
    case 401:
      return Refused(absl::PermissionDeniedError(
                         "HTTP status 401: it needs a token, or another one"),
                     HttpFailure::kDenied);
    case 403:
      return Refused(
          absl::PermissionDeniedError("HTTP status 403: forbidden, at least "
                                      "with this token or without one"),
          HttpFailure::kDenied);
    case 404:
    case 410:
      return Refused(
          absl::NotFoundError(absl::StrCat("HTTP status ", head.status)),
          HttpFailure::kDenied);
    case 416:
      return Refused(absl::DataLossError(absl::StrCat(
                         "HTTP status 416: the file ends before byte ",
                         wanted.has_value() ? wanted->begin : 0)),
                     HttpFailure::kWrongRange);
    case 429:
    case 503:
      return Again(head, HttpFailure::kBusy);
    case 408:
    case 425:
      return Again(head, HttpFailure::kServerError);
    default:
      if (head.status >= 500) return Again(head, HttpFailure::kServerError);
  }
  return Refused(absl::FailedPreconditionError(
                     absl::StrCat("unexpected HTTP status ", head.status)),
                 HttpFailure::kDenied);
}

HttpVerdict JudgeTransport(const absl::Status& status) {
  const HttpFailure why = absl::IsDeadlineExceeded(status)
                              ? HttpFailure::kStalled
                              : HttpFailure::kConnection;
  if (absl::IsFailedPrecondition(status)) return Refused(status, why);
  return {absl::UnavailableError(status.message()), why, /*retry=*/true,
          std::nullopt};
}

}  // namespace engram
