#include "tests/fault/tcp_proxy/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace engram::fault {
namespace {

// Else small messages wait up to 40 ms for an acknowledgement of those before.
void SendAtOnce(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

absl::Status ErrnoStatus(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

void Fd::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void Fd::Reset() {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  Close();
}

absl::StatusOr<Endpoint> Endpoint::Parse(const std::string& address) {
  Endpoint endpoint;
  absl::string_view path = address;
  if (absl::ConsumePrefix(&path, "unix:")) {
    auto& to = reinterpret_cast<sockaddr_un&>(endpoint.address_);
    if (path.empty() || path.size() >= sizeof(to.sun_path)) {
      return absl::InvalidArgumentError(absl::StrCat("a path of ", path.size(),
                                                     " bytes, the limit is ",
                                                     sizeof(to.sun_path) - 1));
    }
    to.sun_family = AF_UNIX;
    path.copy(to.sun_path, path.size());
    endpoint.size_ = sizeof(to);
    return endpoint;
  }
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(address, absl::MaxSplits(':', 1));
  auto& to = reinterpret_cast<sockaddr_in&>(endpoint.address_);
  uint32_t port = 0;
  if (inet_pton(AF_INET, parts.first.c_str(), &to.sin_addr) != 1 ||
      !absl::SimpleAtoi(parts.second, &port) || port > UINT16_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", address, "' is neither IPV4:PORT nor unix:PATH"));
  }
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  endpoint.size_ = sizeof(to);
  return endpoint;
}

absl::StatusOr<Fd> Endpoint::Connect() const {
  Fd fd(socket(address_.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
               0));
  if (!fd.valid()) return ErrnoStatus("socket");
  if (address_.ss_family == AF_INET) SendAtOnce(fd.get());
  const int rc =
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&address_), size_);
  if (rc != 0 && errno != EINPROGRESS) return ErrnoStatus("connect");
  return fd;
}

absl::StatusOr<Listener> Listener::Bind() {
  Listener listener;
  listener.fd =
      Fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // A successor may listen here while connections of this one still end.
  const int on = 1;
  setsockopt(listener.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  SendAtOnce(listener.fd.get());  // what it accepts inherits it
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.fd.get(), generic, size) != 0 ||
      listen(listener.fd.get(), SOMAXCONN) != 0 ||
      getsockname(listener.fd.get(), generic, &size) != 0) {
    return ErrnoStatus("a port of 127.0.0.1");
  }
  listener.address = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  return listener;
}

}  // namespace engram::fault
