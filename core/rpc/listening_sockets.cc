#include "core/rpc/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

constexpr absl::string_view kUnixPrefix = "unix:";
// The second address of a host gets the port that the kernel chose for the
// first, which somebody else may have there.
constexpr int kPortTries = 16;

std::string Describe(int error) {
  return error == EADDRINUSE ? "the address is already in use"
                             : std::strerror(error);
}

absl::Status ErrnoStatus(int error) {
  return absl::UnavailableError(Describe(error));
}

// A socket that listens, or -1 and errno.
int Listen(int family, const sockaddr* address, socklen_t length) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                        /*protocol=*/0);
  if (fd < 0) return -1;
  const int on = 1, off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (family == AF_INET6) {
    const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(address);
    const bool any = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, any ? &off : &on, sizeof(int));
  }
  if (bind(fd, address, length) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

uint16_t PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

void SetPort(sockaddr* address, uint16_t port) {
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
  }
}

bool IsSameHost(const addrinfo& a, const addrinfo& b) {
  if (a.ai_family != b.ai_family || a.ai_addrlen != b.ai_addrlen) return false;
  if (a.ai_family == AF_INET) {
    return reinterpret_cast<sockaddr_in*>(a.ai_addr)->sin_addr.s_addr ==
           reinterpret_cast<sockaddr_in*>(b.ai_addr)->sin_addr.s_addr;
  }
  const auto* const a6 = reinterpret_cast<sockaddr_in6*>(a.ai_addr);
  const auto* const b6 = reinterpret_cast<sockaddr_in6*>(b.ai_addr);
  return IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr) &&
         a6->sin6_scope_id == b6->sin6_scope_id;
}

// A list of hosts may name one twice.
bool StoodBefore(const addrinfo* addresses, const addrinfo* info) {
  for (; addresses != info; addresses = addresses->ai_next) {
    if (IsSameHost(*addresses, *info)) return true;
  }
  return false;
}

// Such an address is in the host's list, and not on this machine.
bool IsNotHere(int error) {
  return error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
}

// One socket for each address, all with one port. `fds` has those that were
// opened, also when one could not be. 0, or the errno.
int ListenAtAll(const addrinfo* addresses, bool any_port,
                std::vector<int>& fds) {
  int not_here = 0;
  uint16_t port = 0;
  for (const addrinfo* info = addresses; info != nullptr;
       info = info->ai_next) {
    if (StoodBefore(addresses, info)) continue;
    if (any_port) SetPort(info->ai_addr, port);
    const int fd = Listen(info->ai_family, info->ai_addr, info->ai_addrlen);
    if (fd < 0 && !IsNotHere(errno)) return errno;
    if (fd < 0) {
      not_here = errno;
      continue;
    }
    port = PortOf(fd);
    fds.push_back(fd);
  }
  return fds.empty() ? not_here : 0;
}

void CloseAll(std::vector<int>& fds) {
  for (const int fd : std::exchange(fds, {})) close(fd);
}

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  return address;
}

// Whether what is at `path` may be replaced by a socket.
absl::Status CheckUnixPathIsFree(const std::string& path) {
  struct stat entry {};
  if (lstat(path.c_str(), &entry) != 0) return absl::OkStatus();
  if (!S_ISSOCK(entry.st_mode)) {
    return absl::UnavailableError("the path is there and no socket");
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return ErrnoStatus(errno);
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  const sockaddr_un address = UnixAddress(path);
  const int result =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  // EAGAIN: somebody listens whose backlog is full.
  if (result == 0 || errno == EAGAIN || errno == EINPROGRESS) {
    return absl::UnavailableError("the address is already in use by a server");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ListeningSockets>> ListeningSockets::Open(
    const std::string& address) {
  std::unique_ptr<ListeningSockets> sockets(new ListeningSockets);
  absl::string_view rest = address;
  absl::Status status;
  if (absl::ConsumePrefix(&rest, kUnixPrefix)) {
    sockets->address_ = address;
    status = sockets->OpenUnix(std::string(rest));
  } else {
    const size_t colon = rest.rfind(':');
    if (colon == absl::string_view::npos) {
      status = absl::UnavailableError("the address has no port");
    } else {
      status = sockets->OpenTcp(std::string(rest.substr(0, colon)),
                                std::string(rest.substr(colon + 1)));
    }
  }
  if (status.ok()) return sockets;
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address, ": ", status.message()));
}

absl::Status ListeningSockets::OpenUnix(const std::string& path) {
  ENGRAM_RETURN_IF_ERROR(CheckUnixPathIsFree(path));
  unlink(path.c_str());
  const sockaddr_un address = UnixAddress(path);
  const int fd = Listen(AF_UNIX, reinterpret_cast<const sockaddr*>(&address),
                        sizeof(address));
  if (fd < 0) return ErrnoStatus(errno);
  fds_.push_back(fd);
  struct stat entry {};
  if (lstat(path.c_str(), &entry) == 0) {
    unix_path_ = path;
    unix_inode_ = entry.st_ino;
  }
  return absl::OkStatus();
}

absl::Status ListeningSockets::OpenTcp(const std::string& host,
                                       const std::string& port) {
  std::string bare = host;
  if (host.size() > 2 && host.front() == '[') {
    bare = host.substr(1, host.size() - 2);
  }
  // All addresses of both kinds are one socket, where there is IPv6.
  const bool any = bare == "0.0.0.0" || bare == "::";
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  int error = EAFNOSUPPORT;
  for (const char* const name : {any ? "::" : bare.c_str(), "0.0.0.0"}) {
    addrinfo* found = nullptr;
    const int result = getaddrinfo(name, port.c_str(), &hints, &found);
    if (result != 0) {
      return absl::UnavailableError(
          absl::StrCat("host ", bare, ": ", gai_strerror(result)));
    }
    const auto free_found = absl::MakeCleanup([found] { freeaddrinfo(found); });
    const bool any_port = port.find_first_not_of('0') == std::string::npos;
    for (int tries = any_port ? kPortTries : 1; tries > 0; --tries) {
      error = ListenAtAll(found, any_port, fds_);
      if (error == 0) {
        address_ = absl::StrCat(host, ":", PortOf(fds_[0]));
        return absl::OkStatus();
      }
      CloseAll(fds_);
      if (error != EADDRINUSE) break;
    }
    if (!any || !IsNotHere(error)) break;
  }
  return ErrnoStatus(error);
}

ListeningSockets::~ListeningSockets() {
  struct stat entry {};
  if (!unix_path_.empty() && lstat(unix_path_.c_str(), &entry) == 0 &&
      entry.st_ino == unix_inode_) {
    unlink(unix_path_.c_str());
  }
  CloseAll(fds_);
}

std::string WhyNotBound(absl::string_view address) {
  const auto sockets = ListeningSockets::Open(std::string(address));
  if (sockets.ok()) return "it could not be bound";
  absl::string_view why = sockets.status().message();
  absl::ConsumePrefix(&why, absl::StrCat("cannot listen on ", address, ": "));
  return std::string(why);
}

}  // namespace engram
