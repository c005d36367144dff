#ifndef ENGRAM_CORE_HTTP_CURL_TRANSPORT_H_
#define ENGRAM_CORE_HTTP_CURL_TRANSPORT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/http/http_transport.h"

namespace engram {

// HTTP/1.1 over libcurl. A call has a connection for itself, which stays open
// for later ones: as many as there were calls at a time, at most 64. Proxies
// are those of the environment, as libcurl has it.
class CurlTransport final : public HttpTransport {
 public:
  struct Options {
    std::string ca_file;  // PEM; empty: the system's
    absl::Duration connect_timeout = absl::Seconds(10);
    // A transfer ends that brings less than min_bytes_per_second while it waits
    // this long. Time in the receiver does not count.
    absl::Duration stall_timeout = absl::Seconds(20);
    uint64_t min_bytes_per_second = 4096;
  };

  explicit CurlTransport(Options options);
  ~CurlTransport() override;

  absl::Status Get(const HttpRequest& request, HttpReceiver& receiver) override;

 private:
  class Connection;

  std::unique_ptr<Connection> Take();
  void Give(std::unique_ptr<Connection> connection);

  const Options options_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_CORE_HTTP_CURL_TRANSPORT_H_
