#include "tests/bench/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace engram::bench {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;
constexpr int kBacklog = 64;

absl::Status Failed(absl::string_view what) {
  if (errno == EAGAIN || errno == EWOULDBLOCK) {
    return absl::DeadlineExceededError(
        absl::StrCat(what, ": no progress in time"));
  }
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::StatusOr<sockaddr_in> ParseAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  sockaddr_in parsed = {};
  parsed.sin_family = AF_INET;
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65535 ||
      inet_pton(AF_INET, address.substr(0, colon).c_str(), &parsed.sin_addr) !=
          1) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address, "\" is not an IPv4 number and a port"));
  }
  parsed.sin_port = htons(static_cast<uint16_t>(port));
  return parsed;
}

void SetTimeout(int fd, int option, absl::Duration timeout) {
  const timeval value = absl::ToTimeval(timeout);
  setsockopt(fd, SOL_SOCKET, option, &value, sizeof(value));
}

}  // namespace

Socket::Socket(int fd) : fd_(fd) {
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

absl::StatusOr<Socket> Socket::Connect(const std::string& address,
                                       absl::Duration timeout) {
  ENGRAM_ASSIGN_OR_RETURN(const sockaddr_in peer, ParseAddress(address));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed("socket");
  Socket connection(fd);
  SetTimeout(fd, SO_RCVTIMEO, timeout);
  SetTimeout(fd, SO_SNDTIMEO, timeout);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)) !=
      0) {
    return Failed(absl::StrCat("connect to ", address));
  }
  return connection;
}

absl::Status Socket::ReadFull(absl::Span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t n = recv(fd_, out.data(), out.size(), MSG_WAITALL);
    if (n == 0) return absl::UnavailableError("the other side has closed");
    if (n < 0 && errno != EINTR) return Failed("recv");
    if (n > 0) out.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> Socket::ReadSome(absl::Span<std::byte> out) {
  for (;;) {
    const ssize_t n = recv(fd_, out.data(), out.size(), 0);
    if (n > 0) return static_cast<size_t>(n);
    if (n == 0) return absl::UnavailableError("the other side has closed");
    if (errno != EINTR) return Failed("recv");
  }
}

absl::Status Socket::WriteFull(absl::Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR) return Failed("send");
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

void Socket::Shutdown() {
  if (fd_ >= 0) shutdown(fd_, SHUT_RDWR);
}

absl::StatusOr<Listener> Listener::Bind() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed("socket");
  Listener listener(fd, "");
  sockaddr_in local = {};
  local.sin_family = AF_INET;
  local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(local);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&local), size) != 0 ||
      listen(fd, kBacklog) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size) != 0) {
    return Failed("listen on 127.0.0.1");
  }
  listener.address_ = absl::StrCat("127.0.0.1:", ntohs(local.sin_port));
  return listener;
}

Listener::Listener(Listener&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), address_(std::move(other.address_)) {}

Listener::~Listener() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<Socket> Listener::Accept() {
  for (;;) {
    const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) return Socket(fd);
    if (errno == EINVAL) return absl::CancelledError("shut down");
    if (errno != EINTR && errno != ECONNABORTED) return Failed("accept");
  }
}

void Listener::Shutdown() { shutdown(fd_, SHUT_RDWR); }

BufferedReader::BufferedReader(Socket& socket)
    : socket_(socket), buffer_(kBufferBytes) {}

absl::Status BufferedReader::Fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  ENGRAM_ASSIGN_OR_RETURN(
      const size_t n, socket_.ReadSome(absl::MakeSpan(buffer_).subspan(end_)));
  end_ += n;
  return absl::OkStatus();
}

absl::StatusOr<const char*> BufferedReader::Peek(size_t size_bytes) {
  ENGRAM_CHECK(size_bytes <= kMaxPeekBytes);
  while (end_ - begin_ < size_bytes) ENGRAM_RETURN_IF_ERROR(Fill());
  return reinterpret_cast<const char*>(buffer_.data() + begin_);
}

absl::StatusOr<std::string> BufferedReader::Line() {
  for (size_t size = 2; size <= kMaxPeekBytes; ++size) {
    ENGRAM_ASSIGN_OR_RETURN(const char* text, Peek(size));
    if (text[size - 2] != '\r' || text[size - 1] != '\n') continue;
    std::string line(text, size - 2);
    Consume(size);
    return line;
  }
  return absl::DataLossError(
      absl::StrCat("a line above ", kMaxPeekBytes, " bytes"));
}

}  // namespace engram::bench
