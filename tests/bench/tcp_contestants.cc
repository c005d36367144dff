// The contestants over plain TCP: T1 and T2 differ in the number of
// connections here and in what the peer does, tcp_bytes is a part of the floor.

#include <cstring>

#include "tests/bench/pipelined.h"
#include "tests/bench/tcp_wire.h"

namespace engram::bench {
namespace {

class TcpProtocol final : public RowProtocol {
 public:
  TcpProtocol(Socket& socket, uint32_t flags)
      : socket_(socket), flags_(flags) {}

  void AppendRequest(const Batch& batch, std::string& request) override {
    const uint32_t header =
        static_cast<uint32_t>(batch.indices.size()) | flags_;
    request.append(reinterpret_cast<const char*>(&header), sizeof(header));
    request.append(reinterpret_cast<const char*>(batch.indices.data()),
                   batch.indices.size() * sizeof(uint32_t));
  }

  absl::Status ReadReply(const Batch&, absl::Span<std::byte> out) override {
    return socket_.ReadFull(out);
  }

 private:
  Socket& socket_;
  const uint32_t flags_;
};

std::unique_ptr<GatherContestant> MakeTcp(const ContestantOptions& options,
                                          size_t connections, uint32_t flags) {
  return MakePipelined({.address = options.addresses[0],
                        .connections = connections,
                        .make_protocol =
                            [flags](Socket& socket) {
                              return std::make_unique<TcpProtocol>(socket,
                                                                   flags);
                            },
                        .delivers_rows = (flags & kBytesOnly) == 0});
}

}  // namespace

std::unique_ptr<GatherContestant> MakeT1(const ContestantOptions& options) {
  return MakeTcp(options, 1, 0);
}

std::unique_ptr<GatherContestant> MakeT2(const ContestantOptions& options) {
  return MakeTcp(options, 2, 0);
}

std::unique_ptr<GatherContestant> MakeTcpBytes(
    const ContestantOptions& options) {
  return MakeTcp(options, 1, kBytesOnly);
}

}  // namespace engram::bench
