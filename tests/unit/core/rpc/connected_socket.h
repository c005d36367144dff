#ifndef ENGRAM_TESTS_UNIT_CORE_RPC_CONNECTED_SOCKET_H_
#define ENGRAM_TESTS_UNIT_CORE_RPC_CONNECTED_SOCKET_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace engram::test {

// A plain socket connected to 127.0.0.1:PORT or unix:PATH.
class ConnectedSocket {
 public:
  explicit ConnectedSocket(absl::string_view address) {
    if (absl::ConsumePrefix(&address, "unix:")) {
      sockaddr_un to{.sun_family = AF_UNIX};
      address.copy(to.sun_path, sizeof(to.sun_path) - 1);
      Connect(AF_UNIX, reinterpret_cast<sockaddr*>(&to), sizeof(to));
    } else {
      int port = 0;
      (void)absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port);
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(static_cast<uint16_t>(port));
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      Connect(AF_INET, reinterpret_cast<sockaddr*>(&to), sizeof(to));
    }
  }
  ~ConnectedSocket() {
    if (fd_ >= 0) close(fd_);
  }
  ConnectedSocket(ConnectedSocket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), ok_(other.ok_) {}
  ConnectedSocket& operator=(ConnectedSocket&&) = delete;

  bool ok() const { return ok_; }
  // Whether the other side has closed it, by `timeout_ms`.
  bool Closed(int timeout_ms) const {
    pollfd file{fd_, POLLIN, 0};
    char byte = 0;
    return poll(&file, 1, timeout_ms) == 1 && recv(fd_, &byte, 1, 0) <= 0;
  }

 private:
  void Connect(int family, const sockaddr* address, socklen_t length) {
    fd_ = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ok_ = fd_ >= 0 && connect(fd_, address, length) == 0;
  }

  int fd_ = -1;
  bool ok_ = false;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_CORE_RPC_CONNECTED_SOCKET_H_
