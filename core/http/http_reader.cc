#include "core/http/http_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/http/http_answer.h"

namespace engram {
namespace {

constexpr absl::Duration kPauseStep = absl::Milliseconds(50);

}  // namespace

// One thing that is read, over as many requests as it takes.
class HttpReader::Transfer final : public HttpReceiver {
 public:
  // Without a range: all of a file of at most `max_bytes`.
  Transfer(std::string url, std::optional<ByteRange> range, uint64_t file_bytes,
           uint64_t max_bytes, Taker take, Waiter wait, HttpCounters& counters)
      : url_(std::move(url)),
        range_(range),
        max_bytes_(max_bytes),
        take_(take),
        wait_(wait),
        counters_(counters) {
    facts_.file_bytes = file_bytes;
  }

  const std::string& url() const { return url_; }
  const FileFacts& facts() const { return facts_; }
  uint64_t filled() const { return filled_; }
  // The taker's error, or another that no further attempt would change.
  const absl::Status& ended() const { return ended_; }

  HttpRequest Next(std::string token) {
    verdict_.reset();
    if (!range_.has_value()) filled_ = 0;
    return {url_, Missing(), std::move(token)};
  }

  // What the last attempt came to; none: all is there.
  std::optional<HttpVerdict> Judge(const absl::Status& sent) const {
    if (verdict_.has_value()) return verdict_;
    // A connection that breaks after the last byte broke too late.
    if (range_.has_value() && filled_ == range_->size()) return std::nullopt;
    if (!sent.ok()) return JudgeTransport(sent);
    if (!range_.has_value()) return std::nullopt;
    return JudgeTransport(absl::UnavailableError(absl::StrCat(
        "the answer ended after ", filled_, " of ", range_->size(), " bytes")));
  }

  absl::Status OnHead(const HttpHead& head) override {
    verdict_ = JudgeHead(head, Missing(), facts_.file_bytes);
    if (verdict_.has_value()) return verdict_->status;
    // Bytes of two states of a file are not to be joined.
    if (filled_ > 0 && head.etag != facts_.etag) return BeginAnew(head);
    facts_.etag = head.etag;
    if (range_.has_value()) {
      facts_.file_bytes = ParseContentRange(head.content_range)->file_bytes;
    }
    return absl::OkStatus();
  }

  absl::Status OnBody(absl::Span<const std::byte> bytes) override {
    counters_.Received(bytes.size());
    const uint64_t limit = range_.has_value() ? range_->size() : max_bytes_;
    if (bytes.size() > limit - filled_) {
      ended_ = range_.has_value()
                   ? absl::DataLossError(absl::StrCat("more than the ", limit,
                                                      " bytes asked for came"))
                   : absl::InvalidArgumentError(absl::StrCat(
                         "the file has more bytes than the limit, ", limit));
      return ended_;
    }
    ended_ = take_(filled_, bytes);
    filled_ += bytes.size();
    return ended_;
  }

  absl::Status OnWait() override {
    ended_ = wait_();
    return ended_;
  }

 private:
  std::optional<ByteRange> Missing() const {
    if (!range_.has_value()) return std::nullopt;
    return ByteRange{range_->begin + filled_, range_->end};
  }

  absl::Status BeginAnew(const HttpHead& head) {
    if (began_anew_) {
      ended_ = absl::UnavailableError(absl::StrCat(
          url_,
          ": the file changes while it is read, or its copies are told "
          "apart: a third ETag is ",
          head.etag));
      return ended_;
    }
    began_anew_ = true;
    filled_ = 0;
    verdict_ = HttpVerdict{
        absl::UnavailableError(absl::StrCat(
            "the file was changed while it was read, its ETag is ", head.etag)),
        HttpFailure::kWrongRange, /*retry=*/true, absl::ZeroDuration()};
    return verdict_->status;
  }

  const std::string url_;
  const std::optional<ByteRange> range_;
  const uint64_t max_bytes_;
  const Taker take_;
  const Waiter wait_;
  HttpCounters& counters_;
  uint64_t filled_ = 0;
  FileFacts facts_;
  bool began_anew_ = false;
  absl::Status ended_;
  std::optional<HttpVerdict> verdict_;  // of the attempt under way
};

HttpReader::HttpReader(std::unique_ptr<HttpTransport> transport,
                       std::unique_ptr<BearerToken> token, Options options)
    : options_(std::move(options)),
      transport_(std::move(transport)),
      token_(std::move(token)) {}

absl::StatusOr<HttpReader::FileFacts> HttpReader::ReadRange(
    const HttpRange& range, Taker take, Waiter wait) {
  Transfer transfer(range.url, range.bytes, range.file_bytes, 0, take, wait,
                    counters_);
  ENGRAM_RETURN_IF_ERROR(Run(transfer, wait));
  return transfer.facts();
}

absl::StatusOr<std::string> HttpReader::ReadFile(const std::string& url,
                                                 size_t max_bytes,
                                                 Waiter wait) {
  std::string content;
  const auto take = [&](uint64_t offset, absl::Span<const std::byte> bytes) {
    content.resize(offset);
    content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return absl::OkStatus();
  };
  Transfer transfer(url, std::nullopt, 0, max_bytes, take, wait, counters_);
  ENGRAM_RETURN_IF_ERROR(Run(transfer, wait));
  content.resize(transfer.filled());
  return content;
}

absl::Status HttpReader::Run(Transfer& transfer, Waiter wait) {
  uint32_t failures = 0;
  while (true) {
    const uint64_t before = transfer.filled();
    const std::string token = TokenNow();
    counters_.Requested();
    const absl::Status sent = transport_->Get(transfer.Next(token), transfer);
    if (!transfer.ended().ok()) return transfer.ended();
    std::optional<HttpVerdict> verdict = transfer.Judge(sent);
    if (!verdict.has_value()) return absl::OkStatus();
    counters_.Failed(verdict->why);
    // The token may have been rotated between its reading and its use.
    if (absl::IsPermissionDenied(verdict->status) && TokenNow() != token) {
      verdict->retry = true;
      verdict->retry_after = absl::ZeroDuration();
    }
    const bool progress =
        transfer.filled() >= before + options_.min_progress_bytes;
    failures = progress ? 1 : failures + 1;
    if (!verdict->retry || failures >= options_.max_attempts) {
      return Annotate(verdict->status, transfer.url());
    }
    counters_.Retried();
    const absl::Duration pause =
        verdict->retry_after.has_value()
            ? std::min(*verdict->retry_after, options_.longest_retry_after)
            : BackoffDelay(options_.pause, failures);
    ENGRAM_RETURN_IF_ERROR(Pause(pause, wait));
  }
}

std::string HttpReader::TokenNow() {
  return token_ == nullptr ? "" : token_->Current();
}

absl::Status HttpReader::Pause(absl::Duration pause, Waiter wait) {
  while (pause > absl::ZeroDuration()) {
    ENGRAM_RETURN_IF_ERROR(wait());
    const absl::Duration step = std::min(pause, kPauseStep);
    options_.sleep(step);
    pause -= step;
  }
  return wait();
}

}  // namespace engram
