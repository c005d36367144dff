#ifndef ENGRAM_TESTS_BENCH_TCP_PEER_H_
#define ENGRAM_TESTS_BENCH_TCP_PEER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "tests/bench/row_table.h"
#include "tests/bench/socket.h"

namespace engram::bench {

// A plain TCP server of rows (tcp_wire.h), a thread a connection.
class TcpPeer {
 public:
  struct Options {
    // Rows gathered before they are written; 0: the whole batch.
    size_t piece_rows = 0;
  };

  // Listening when it returns. `table` must outlive the peer.
  static absl::StatusOr<std::unique_ptr<TcpPeer>> Start(const RowTable& table,
                                                        Options options);
  ~TcpPeer();  // closes every connection and joins

  const std::string& address() const { return listener_.address(); }

 private:
  struct Client {
    Socket socket;
    std::thread thread;
    bool done = false;
  };

  TcpPeer(const RowTable& table, Options options, Listener listener);
  void AcceptClients();
  void Serve(Client& client);
  void JoinDone();

  const RowTable& table_;
  const Options options_;
  Listener listener_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Client>> clients_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread acceptor_;
};

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_TCP_PEER_H_
