#ifndef ENGRAM_TESTS_BENCH_SOCKET_H_
#define ENGRAM_TESTS_BENCH_SOCKET_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace engram::bench {

// A TCP connection with blocking reads and writes, without Nagle's delay.
// Move-only; closed on destruction.
//
// Thread safety: one thread may read while another writes; Shutdown may be
// called by any.
class Socket {
 public:
  // `address` is HOST:PORT, the host an IPv4 number. Reads and writes fail
  // with DEADLINE_EXCEEDED after `timeout` without progress.
  static absl::StatusOr<Socket> Connect(const std::string& address,
                                        absl::Duration timeout);

  Socket() = default;
  explicit Socket(int fd);  // takes it over
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;

  // UNAVAILABLE: the other side has closed.
  absl::Status ReadFull(absl::Span<std::byte> out);
  absl::StatusOr<size_t> ReadSome(absl::Span<std::byte> out);
  absl::Status WriteFull(absl::Span<const std::byte> bytes);

  // Ends reads and writes under way and to come.
  void Shutdown();

 private:
  int fd_ = -1;
};

// A listening socket on a free port of 127.0.0.1.
class Listener {
 public:
  static absl::StatusOr<Listener> Bind();

  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  const std::string& address() const { return address_; }
  // CANCELLED once Shutdown was called.
  absl::StatusOr<Socket> Accept();
  void Shutdown();

 private:
  Listener(int fd, std::string address)
      : fd_(fd), address_(std::move(address)) {}

  int fd_;
  std::string address_;
};

// Reads a socket through a buffer, for protocols of text lines and lengths.
class BufferedReader {
 public:
  explicit BufferedReader(Socket& socket);

  // Makes the next `size_bytes` stand together; valid until the next call.
  // REQUIRES: size_bytes <= kMaxPeekBytes.
  static constexpr size_t kMaxPeekBytes = 4096;
  absl::StatusOr<const char*> Peek(size_t size_bytes);
  // REQUIRES: that much was peeked at.
  void Consume(size_t size_bytes) { begin_ += size_bytes; }
  // Up to and without "\r\n", which is consumed too.
  absl::StatusOr<std::string> Line();

 private:
  absl::Status Fill();

  Socket& socket_;
  std::vector<std::byte> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_SOCKET_H_
