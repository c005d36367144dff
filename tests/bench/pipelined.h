#ifndef ENGRAM_TESTS_BENCH_PIPELINED_H_
#define ENGRAM_TESTS_BENCH_PIPELINED_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/bench/contestant.h"
#include "tests/bench/socket.h"

namespace engram::bench {

// What a peer speaks over one TCP connection: requests one after another,
// answered in their order. One object a connection.
//
// Thread safety: one thread may append requests while another reads replies.
class RowProtocol {
 public:
  virtual ~RowProtocol() = default;
  virtual void AppendRequest(const Batch& batch, std::string& request) = 0;
  // Reads the reply to the oldest unanswered request into `out`.
  virtual absl::Status ReadReply(const Batch& batch,
                                 absl::Span<std::byte> out) = 0;
};

struct PipelinedOptions {
  std::string address;
  size_t connections = 1;
  std::function<std::unique_ptr<RowProtocol>(Socket&)> make_protocol;
  // Brings the peer its rows; may be null.
  std::function<absl::Status(Socket&, const RowTable&)> load;
  bool delivers_rows = true;
};

// Gathers over TCP connections, each batch over the one that has the fewest
// outstanding. With one gather in flight the driver's thread reads the reply
// itself, so that no thread has to be woken; with more, every connection has a
// thread that reads straight into the callers' rows.
std::unique_ptr<GatherContestant> MakePipelined(PipelinedOptions options);

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_PIPELINED_H_
