// engram-bench-peer: the servers that the gather path is compared with. Each
// holds all rows of a checkpoint in memory, in huge pages, and prints
// "listening on HOST:PORT" and "ready".
//
//   engram-bench-peer --kind t1|t2|easy_grpc --checkpoint DIR
//
// t1: plain TCP, a batch is gathered whole and then written. t2: the same in
// pieces of 128 KB. easy_grpc: gRPC's callback API, rows in a `bytes` field.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "core/base/status_macros.h"
#include "core/rpc/shutdown_signal.h"
#include "tests/bench/easy_grpc_peer.h"
#include "tests/bench/tcp_peer.h"

namespace engram::bench {
namespace {

constexpr size_t kPieceBytes = size_t{128} << 10;

void SayReady(const std::string& address) {
  std::printf("listening on %s\nready\n", address.c_str());
  std::fflush(stdout);
}

absl::Status Main(const std::string& kind, const std::string& checkpoint,
                  const ShutdownSignal& signal) {
  ENGRAM_ASSIGN_OR_RETURN(const RowTable table, RowTable::Load(checkpoint));
  if (kind == "easy_grpc") {
    ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<EasyGrpcPeer> peer,
                            EasyGrpcPeer::Start(table));
    SayReady(peer->address());
    signal.WaitUntil(absl::InfiniteFuture());
    return absl::OkStatus();
  }
  const size_t piece_rows = kind == "t2" ? kPieceBytes / table.row_bytes() : 0;
  ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<TcpPeer> peer,
                          TcpPeer::Start(table, {.piece_rows = piece_rows}));
  SayReady(peer->address());
  signal.WaitUntil(absl::InfiniteFuture());
  return absl::OkStatus();
}

}  // namespace
}  // namespace engram::bench

int main(int argc, char** argv) {
  const engram::ShutdownSignal signal;
  CLI::App app("Servers that the gather path is compared with.");
  std::string kind;
  std::string checkpoint;
  app.add_option("--kind", kind, "t1, t2 or easy_grpc")
      ->required()
      ->check(CLI::IsMember({"t1", "t2", "easy_grpc"}));
  app.add_option("--checkpoint", checkpoint, "directory of a checkpoint")
      ->required();
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = engram::bench::Main(kind, checkpoint, signal);
  if (status.ok()) return 0;
  std::fprintf(stderr, "engram-bench-peer: %s\n", status.ToString().c_str());
  return 1;
}
