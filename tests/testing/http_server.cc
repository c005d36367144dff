#include "tests/testing/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/check.h"

namespace engram::test {
namespace {

HttpServer::Request ParseRequest(absl::string_view head) {
  HttpServer::Request request;
  const std::vector<absl::string_view> lines = absl::StrSplit(head, "\r\n");
  const std::vector<absl::string_view> first = absl::StrSplit(lines[0], ' ');
  if (first.size() > 1) request.target = std::string(first[1]);
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(lines[i], absl::MaxSplits(':', 1));
    request.headers[absl::AsciiStrToLower(field.first)] =
        std::string(absl::StripAsciiWhitespace(field.second));
  }
  return request;
}

// The next request's head; none: the client has gone.
std::optional<std::string> ReadHead(int fd, std::string& buffer) {
  const std::string kEnd = "\r\n\r\n";
  size_t end = buffer.find(kEnd);
  while (end == std::string::npos) {
    char piece[4096];
    const ssize_t size = read(fd, piece, sizeof(piece));
    if (size <= 0) return std::nullopt;
    buffer.append(piece, static_cast<size_t>(size));
    end = buffer.find(kEnd);
  }
  std::string head = buffer.substr(0, end);
  buffer.erase(0, end + kEnd.size());
  return head;
}

bool WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

}  // namespace

HttpServer::HttpServer(Handler handler) : handler_(std::move(handler)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  ENGRAM_CHECK(listener_ >= 0 && bind(listener_, plain, size) == 0 &&
               listen(listener_, 64) == 0 &&
               getsockname(listener_, plain, &size) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

HttpServer::~HttpServer() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    for (const int fd : fds_) shutdown(fd, SHUT_RDWR);
  }
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    MutexLock lock(&mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(&mutex_);
  for (const int fd : fds_) close(fd);
  close(listener_);
}

std::string HttpServer::Url(const std::string& target) const {
  return absl::StrCat("http://127.0.0.1:", port_, target);
}

std::vector<HttpServer::Request> HttpServer::requests() const {
  MutexLock lock(&mutex_);
  return requests_;
}

size_t HttpServer::connections() const {
  MutexLock lock(&mutex_);
  return fds_.size();
}

void HttpServer::Accept() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    MutexLock lock(&mutex_);
    fds_.push_back(fd);
    if (stopping_) return;
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void HttpServer::Serve(int fd) {
  std::string buffer;
  while (const std::optional<std::string> head = ReadHead(fd, buffer)) {
    const Request request = ParseRequest(*head);
    {
      MutexLock lock(&mutex_);
      requests_.push_back(request);
    }
    const Reply reply = handler_(request);
    if (!WriteAll(fd, reply.bytes)) break;
    if (reply.then == Then::kClose) break;
    if (reply.then == Then::kHold) ReadHead(fd, buffer);
  }
  shutdown(fd, SHUT_RDWR);
}

std::string HttpReply(int status, const std::vector<std::string>& lines,
                      const std::string& body) {
  std::string text = absl::StrCat(
      "HTTP/1.1 ", status, " x\r\nContent-Length: ", body.size(), "\r\n");
  for (const std::string& line : lines) absl::StrAppend(&text, line, "\r\n");
  return absl::StrCat(text, "\r\n", body);
}

}  // namespace engram::test
