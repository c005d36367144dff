#include "core/http/curl_transport.h"

#include <curl/curl.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/clock.h"

namespace engram {
namespace {

constexpr long kMaxRedirects = 5;
constexpr long kReceiveBufferBytes = 256 << 10;
constexpr int kPollMs = 100;
constexpr size_t kMaxIdle = 64;
constexpr size_t kMaxUrlBytes = 8'000'000;  // libcurl's

// Once in a process, before any handle is made.
void InitCurl() {
  static const CURLcode result = curl_global_init(CURL_GLOBAL_DEFAULT);
  ENGRAM_CHECK(result == CURLE_OK);
}

absl::Status ToStatus(CURLcode code, const char* detail) {
  if (code == CURLE_OK) return absl::OkStatus();
  const char* const text = *detail != '\0' ? detail : curl_easy_strerror(code);
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return absl::FailedPreconditionError(text);
    default:
      return absl::UnavailableError(text);
  }
}

}  // namespace

// A curl handle with its connection, for one transfer at a time.
class CurlTransport::Connection {
 public:
  explicit Connection(const Options& options)
      : options_(options), easy_(curl_easy_init()), multi_(curl_multi_init()) {
    ENGRAM_CHECK(easy_ != nullptr && multi_ != nullptr);
  }
  ~Connection() {
    curl_easy_cleanup(easy_);
    curl_multi_cleanup(multi_);
  }

  absl::Status Get(const HttpRequest& request, HttpReceiver& receiver) {
    receiver_ = &receiver;
    refused_ = absl::OkStatus();
    head_told_ = false;
    told_ = Clock::Steady().Now();
    received_bytes_ = 0;
    error_[0] = '\0';
    if (const CURLcode code = SetOptions(request); code != CURLE_OK) {
      return absl::FailedPreconditionError(
          absl::StrCat("a URL of ", request.url.size(), " bytes, the limit is ",
                       kMaxUrlBytes, ": ", curl_easy_strerror(code)));
    }
    ENGRAM_CHECK(curl_multi_add_handle(multi_, easy_) == CURLM_OK);
    absl::Status status = Transfer();
    curl_multi_remove_handle(multi_, easy_);
    // A receiver that ends the transfer is told to libcurl as a write error.
    if (!refused_.ok()) return refused_;
    if (status.ok() && !head_told_) status = TellHead();  // of an empty body
    return status;
  }

 private:
  template <typename Value>
  void Set(CURLoption option, Value value) {
    ENGRAM_CHECK(curl_easy_setopt(easy_, option, value) == CURLE_OK);
  }

  // Of the URL, which may be too long.
  CURLcode SetOptions(const HttpRequest& request) {
    curl_easy_reset(easy_);  // connections stay open
    const bool secure = absl::StartsWithIgnoreCase(request.url, "https:");
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_FOLLOWLOCATION, 1L);
    Set(CURLOPT_MAXREDIRS, kMaxRedirects);
    Set(CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
    Set(CURLOPT_UNRESTRICTED_AUTH, 0L);
    if (!request.bearer_token.empty()) {
      Set(CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
      Set(CURLOPT_XOAUTH2_BEARER, request.bearer_token.c_str());
      // Whatever the environment says, a proxy is not to read it.
      if (!secure) Set(CURLOPT_PROXY, "");
    }
    if (request.range.has_value()) {
      Set(CURLOPT_RANGE,
          absl::StrCat(request.range->begin, "-", request.range->end - 1)
              .c_str());
    }
    // A connection carries one transfer, so streams in it would gain nothing.
    Set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    if (!options_.ca_file.empty()) {
      Set(CURLOPT_CAINFO, options_.ca_file.c_str());
    }
    Set(CURLOPT_CONNECTTIMEOUT_MS,
        static_cast<long>(absl::ToInt64Milliseconds(options_.connect_timeout)));
    Set(CURLOPT_TCP_KEEPALIVE, 1L);
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_BUFFERSIZE, kReceiveBufferBytes);
    Set(CURLOPT_USERAGENT, "engram");
    Set(CURLOPT_ERRORBUFFER, error_);
    Set(CURLOPT_WRITEDATA, this);
    Set(CURLOPT_WRITEFUNCTION, &Connection::Write);
    return curl_easy_setopt(easy_, CURLOPT_URL, request.url.c_str());
  }

  absl::Status Transfer() {
    absl::Duration waited;  // of what follows, since window_bytes
    uint64_t window_bytes = 0;
    int running = 1;
    while (true) {
      if (const CURLMcode code = curl_multi_perform(multi_, &running);
          code != CURLM_OK) {
        return absl::UnavailableError(curl_multi_strerror(code));
      }
      if (running == 0) return Result();
      const absl::Time began = Clock::Steady().Now();
      curl_multi_poll(multi_, nullptr, 0, kPollMs, nullptr);
      const absl::Time now = Clock::Steady().Now();
      waited += now - began;
      // Not only when nothing is ready: a redirect's body is not told.
      if (now - told_ >= absl::Milliseconds(kPollMs)) {
        told_ = now;
        refused_ = receiver_->OnWait();
        if (!refused_.ok()) return refused_;
      }
      if (waited < options_.stall_timeout) continue;
      const uint64_t came = received_bytes_ - window_bytes;
      if (static_cast<double>(came) <
          static_cast<double>(options_.min_bytes_per_second) *
              absl::ToDoubleSeconds(options_.stall_timeout)) {
        return absl::DeadlineExceededError(
            absl::StrCat(came, " bytes came in ", absl::FormatDuration(waited),
                         " of waiting, the least is ",
                         options_.min_bytes_per_second, " a second"));
      }
      waited = absl::ZeroDuration();
      window_bytes = received_bytes_;
    }
  }

  absl::Status Result() {
    int left = 0;
    const CURLMsg* const message = curl_multi_info_read(multi_, &left);
    ENGRAM_CHECK(message != nullptr && message->msg == CURLMSG_DONE);
    return ToStatus(message->data.result, error_);
  }

  std::string HeaderValue(const char* name) {
    constexpr int kLastRequest = -1;  // after redirects
    curl_header* header = nullptr;
    if (curl_easy_header(easy_, name, 0, CURLH_HEADER, kLastRequest, &header) !=
        CURLHE_OK) {
      return "";
    }
    return header->value;
  }

  absl::Status TellHead() {
    head_told_ = true;
    long status = 0;
    curl_off_t retry_after_s = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy_, CURLINFO_RETRY_AFTER, &retry_after_s);
    HttpHead head{.status = static_cast<int>(status),
                  .content_range = HeaderValue("Content-Range"),
                  .etag = HeaderValue("ETag")};
    if (retry_after_s > 0) head.retry_after = absl::Seconds(retry_after_s);
    return receiver_->OnHead(head);
  }

  static size_t Write(char* data, size_t, size_t size, void* self) {
    return static_cast<Connection*>(self)->Take(data, size) ? size : 0;
  }

  bool Take(const char* data, size_t size) {
    if (!head_told_) refused_ = TellHead();
    if (!refused_.ok()) return false;
    received_bytes_ += size;
    refused_ =
        receiver_->OnBody({reinterpret_cast<const std::byte*>(data), size});
    told_ = Clock::Steady().Now();
    return refused_.ok();
  }

  const Options& options_;
  CURL* const easy_;
  CURLM* const multi_;  // keeps the connection
  char error_[CURL_ERROR_SIZE];
  // Of the transfer under way.
  HttpReceiver* receiver_ = nullptr;
  absl::Status refused_;  // the receiver's error
  bool head_told_ = false;
  absl::Time told_;  // when the receiver was last called
  uint64_t received_bytes_ = 0;
};

CurlTransport::CurlTransport(Options options) : options_(std::move(options)) {
  InitCurl();
}

CurlTransport::~CurlTransport() = default;

absl::Status CurlTransport::Get(const HttpRequest& request,
                                HttpReceiver& receiver) {
  std::unique_ptr<Connection> connection = Take();
  absl::Status status = connection->Get(request, receiver);
  Give(std::move(connection));
  return status;
}

std::unique_ptr<CurlTransport::Connection> CurlTransport::Take() {
  {
    MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Connection> connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return std::make_unique<Connection>(options_);
}

void CurlTransport::Give(std::unique_ptr<Connection> connection) {
  MutexLock lock(&mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(connection));
}

}  // namespace engram
