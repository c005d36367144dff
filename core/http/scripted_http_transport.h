#ifndef ENGRAM_CORE_HTTP_SCRIPTED_HTTP_TRANSPORT_H_
#define ENGRAM_CORE_HTTP_SCRIPTED_HTTP_TRANSPORT_H_

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/http/http_transport.h"

namespace engram {

// A server in memory, for tests: gives the files it has, by range too, unless
// a step of the script says otherwise.
//
// Thread safety: Get may be called concurrently, the rest before.
class ScriptedHttpTransport final : public HttpTransport {
 public:
  // One answer. `head` is made from what was asked for and may be changed.
  struct Step {
    std::function<void(HttpHead& head)> change = [](HttpHead&) {};
    size_t extra_bytes = 0;  // after the body
    // Bytes of the body after which the transfer ends with `ending`.
    size_t cut_after_bytes = SIZE_MAX;
    absl::Status ending;
  };

  std::map<std::string, std::string> files;  // by URL
  std::string etag = "\"a\"";
  size_t piece_bytes = 1000;  // of which bodies are given

  void Then(Step step) {
    MutexLock lock(&mutex_);
    steps_.push_back(std::move(step));
  }
  void ThenStatus(int status) {
    Then({.change = [status](HttpHead& head) { head.status = status; }});
  }
  std::vector<HttpRequest> requests() const {
    MutexLock lock(&mutex_);
    return requests_;
  }

  absl::Status Get(const HttpRequest& request,
                   HttpReceiver& receiver) override {
    const Step step = TakeStep(request);
    HttpHead head{.status = 404};
    std::string body;
    if (const auto file = files.find(request.url); file != files.end()) {
      body = file->second;
      head = {.status = 200, .etag = etag};
      if (request.range.has_value()) body = Cut(*request.range, body, head);
    }
    body.append(step.extra_bytes, 'x');
    step.change(head);
    ENGRAM_RETURN_IF_ERROR(receiver.OnWait());
    ENGRAM_RETURN_IF_ERROR(receiver.OnHead(head));
    body.resize(std::min(body.size(), step.cut_after_bytes));
    for (size_t at = 0; at < body.size(); at += piece_bytes) {
      const absl::string_view piece =
          absl::string_view(body).substr(at, piece_bytes);
      ENGRAM_RETURN_IF_ERROR(receiver.OnBody(
          {reinterpret_cast<const std::byte*>(piece.data()), piece.size()}));
    }
    return step.ending;
  }

 private:
  Step TakeStep(const HttpRequest& request) {
    MutexLock lock(&mutex_);
    requests_.push_back(request);
    if (steps_.empty()) return {};
    Step step = std::move(steps_.front());
    steps_.pop_front();
    return step;
  }

  static std::string Cut(const ByteRange& range, const std::string& body,
                         HttpHead& head) {
    if (range.begin >= body.size()) {
      head = {.status = 416};
      return "";
    }
    const uint64_t end = std::min<uint64_t>(range.end, body.size());
    head.status = 206;
    head.content_range =
        absl::StrCat("bytes ", range.begin, "-", end - 1, "/", body.size());
    return body.substr(range.begin, end - range.begin);
  }

  mutable Mutex mutex_;
  std::deque<Step> steps_ ABSL_GUARDED_BY(mutex_);
  std::vector<HttpRequest> requests_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_CORE_HTTP_SCRIPTED_HTTP_TRANSPORT_H_
