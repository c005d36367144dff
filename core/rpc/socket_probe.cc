#include "core/rpc/socket_probe.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace engram {
namespace {

constexpr absl::string_view kUnixPrefix = "unix:";

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  return address;
}

// Binds as gRPC does and lets go again. 0 or the errno.
int TryBind(int family, const sockaddr* address, socklen_t length) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd, address, length) != 0 || listen(fd, 1) != 0) return errno;
  if (family == AF_UNIX) {
    unlink(reinterpret_cast<const sockaddr_un*>(address)->sun_path);
  }
  return 0;
}

std::string Describe(int error) {
  if (error == 0) return "it could not be bound";
  if (error == EADDRINUSE) return "the address is already in use";
  return std::strerror(error);
}

}  // namespace

absl::Status CheckUnixPathIsFree(const std::string& path) {
  struct stat entry {};
  if (lstat(path.c_str(), &entry) != 0) return absl::OkStatus();
  if (!S_ISSOCK(entry.st_mode)) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on unix:", path, ": the path is there and no socket"));
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return absl::OkStatus();
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  const sockaddr_un address = UnixAddress(path);
  const int result =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  // EAGAIN: somebody listens whose backlog is full.
  if (result == 0 || errno == EAGAIN || errno == EINPROGRESS) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on unix:", path,
                     ": the address is already in use by a server"));
  }
  return absl::OkStatus();
}

std::string WhyNotBound(absl::string_view address) {
  absl::string_view rest = address;
  if (absl::ConsumePrefix(&rest, kUnixPrefix)) {
    const sockaddr_un path = UnixAddress(std::string(rest));
    return Describe(TryBind(AF_UNIX, reinterpret_cast<const sockaddr*>(&path),
                            sizeof(path)));
  }
  const size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos) return "the address has no port";
  std::string host(rest.substr(0, colon));
  if (host.size() > 2 && host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  }
  const std::string port(rest.substr(colon + 1));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int result = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (result != 0) {
    return absl::StrCat("host ", host, ": ", gai_strerror(result));
  }
  const auto free_found = absl::MakeCleanup([found] { freeaddrinfo(found); });
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    const int error = TryBind(info->ai_family, info->ai_addr, info->ai_addrlen);
    if (error != 0) return Describe(error);
  }
  return Describe(0);
}

}  // namespace engram
