#ifndef ENGRAM_CORE_RPC_LISTENING_SOCKETS_H_
#define ENGRAM_CORE_RPC_LISTENING_SOCKETS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace engram {

// Sockets that listen at one address: one for each that its host stands for.
class ListeningSockets {
 public:
  // `address`: as CheckAddress allows it; port 0 takes a free one, 0.0.0.0 and
  // [::] are all addresses of both kinds. A socket file that nobody listens at
  // is taken over. UNAVAILABLE: "cannot listen on ADDRESS: " and why, e.g. that
  // the address is already in use.
  static absl::StatusOr<std::unique_ptr<ListeningSockets>> Open(
      const std::string& address);
  // Closes them; a socket file that is still this one's goes too.
  ~ListeningSockets();
  ListeningSockets(const ListeningSockets&) = delete;
  ListeningSockets& operator=(const ListeningSockets&) = delete;

  // The true port in place of 0.
  const std::string& address() const { return address_; }
  // They do not block.
  absl::Span<const int> fds() const { return fds_; }

 private:
  ListeningSockets() = default;
  absl::Status OpenUnix(const std::string& path);
  absl::Status OpenTcp(const std::string& host, const std::string& port);

  std::string address_;
  std::vector<int> fds_;
  std::string unix_path_;  // empty: none
  ino_t unix_inode_ = 0;
};

// Why `address` could not be bound by somebody else, in words: found by trying
// once more.
std::string WhyNotBound(absl::string_view address);

}  // namespace engram

#endif  // ENGRAM_CORE_RPC_LISTENING_SOCKETS_H_
