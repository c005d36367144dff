#ifndef ENGRAM_TESTS_FAULT_TCP_PROXY_ENDPOINT_H_
#define ENGRAM_TESTS_FAULT_TCP_PROXY_ENDPOINT_H_

#include <sys/socket.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace engram::fault {

// A file descriptor; closed on destruction. Move-only.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { Close(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this == &other) return *this;
    Close();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Close();
  // Closes a socket so that TCP says RST, not FIN.
  void Reset();

 private:
  int fd_ = -1;
};

// Where a proxy forwards to: "HOST:PORT", the host an IPv4 number, or
// "unix:PATH".
class Endpoint {
 public:
  static absl::StatusOr<Endpoint> Parse(const std::string& address);

  // A non-blocking connection, perhaps still being made. UNAVAILABLE: refused.
  absl::StatusOr<Fd> Connect() const;

 private:
  sockaddr_storage address_{};
  socklen_t size_ = 0;
};

// A non-blocking listening socket on a free port of 127.0.0.1.
struct Listener {
  static absl::StatusOr<Listener> Bind();

  Fd fd;
  std::string address;
};

// "WHAT: what errno says".
absl::Status ErrnoStatus(const std::string& what);

}  // namespace engram::fault

#endif  // ENGRAM_TESTS_FAULT_TCP_PROXY_ENDPOINT_H_
