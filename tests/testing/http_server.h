#ifndef ENGRAM_TESTS_TESTING_HTTP_SERVER_H_
#define ENGRAM_TESTS_TESTING_HTTP_SERVER_H_

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/base/mutex.h"

namespace engram::test {

// An HTTP server on a free port of 127.0.0.1 whose answers a test makes byte
// by byte, sound or not. A thread for each connection.
class HttpServer {
 public:
  struct Request {
    std::string target;                          // "/file?x"
    std::map<std::string, std::string> headers;  // names in lower case
  };
  enum class Then { kKeepOpen, kClose, kHold };
  struct Reply {
    std::string bytes;            // the head and the body
    Then then = Then::kKeepOpen;  // kHold: nothing more, until the client goes
  };
  // Called on several threads, for one request after another of a connection.
  using Handler = std::function<Reply(const Request&)>;

  explicit HttpServer(Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "http://127.0.0.1:PORT" and the target.
  std::string Url(const std::string& target) const;
  std::vector<Request> requests() const;
  size_t connections() const;

 private:
  void Accept();
  void Serve(int fd);

  const Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Request> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> fds_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

// "HTTP/1.1 STATUS ..." with these further header lines and a body.
std::string HttpReply(int status, const std::vector<std::string>& lines,
                      const std::string& body);

}  // namespace engram::test

#endif  // ENGRAM_TESTS_TESTING_HTTP_SERVER_H_
