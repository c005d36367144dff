#ifndef ENGRAM_CORE_RPC_ACCEPTOR_H_
#define ENGRAM_CORE_RPC_ACCEPTOR_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "core/rpc/listening_sockets.h"

namespace engram {

// Accepts connections on a thread of its own and hands them over.
//
// gRPC 1.51 would do that too, but takes all connections that are there before
// it goes on with its calls, so that a crowd of clients holds everybody up;
// takes as many as come; and takes none any more, for good, after one failed,
// be it that no file could be opened.
//
// Thread safety: all methods may be called concurrently.
class Acceptor {
 public:
  struct Options {
    // So many at once, and then so many a second; more wait in the kernel.
    uint32_t burst = 64;
    double per_second = 1000;
    // Connections whose file would have this number or a higher one are closed
    // at once: what else opens files needs some too. 0: as LimitOfFiles.
    int max_file = 0;
  };
  // All there (as 0) from the start.
  struct Metrics {
    // `registry` must outlive this.
    explicit Metrics(prometheus::Registry& registry);

    prometheus::Counter& accepted;
    prometheus::Counter& refused;   // there were too many files
    prometheus::Counter& failures;  // of the kernel to accept one
    prometheus::Gauge& max_file;
  };
  // Gets a connected socket that does not block, and owns it. Called on the
  // acceptor's thread.
  using Take = absl::AnyInvocable<void(int fd)>;

  // `metrics` must outlive this. Starts to accept.
  Acceptor(std::unique_ptr<ListeningSockets> sockets, const Options& options,
           Metrics& metrics, Take take);
  ~Acceptor();  // Stop
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Nobody listens any more and `take` is not running when it returns. Once.
  void Stop();

  // The limit of open files of this process, less a sixteenth of it that
  // connections leave to others.
  static int LimitOfFiles();

 private:
  // When another one may be accepted.
  class Pace {
   public:
    Pace(uint32_t burst, double per_second);
    absl::Duration Wait(absl::Time now);  // zero: now
    void Count() { tokens_ -= 1; }

   private:
    const double burst_;
    const double per_second_;
    double tokens_;
    absl::Time filled_;
  };

  void Run();
  // Sleeps until a connection is there, or for `pause`. False: stopping.
  bool Await(absl::Duration pause) const;
  // Accepts what is there and may be; how long to do nothing then.
  absl::Duration AcceptSome();
  void HandOver(int fd);
  // To the log, now and then.
  void Report(const std::string& what);

  std::unique_ptr<ListeningSockets> sockets_;
  const int max_file_;
  Metrics& metrics_;
  Take take_;
  Pace pace_;                                      // of the thread
  absl::Time next_report_ = absl::InfinitePast();  // likewise
  int stop_event_ = -1;
  std::thread thread_;
};

}  // namespace engram

#endif  // ENGRAM_CORE_RPC_ACCEPTOR_H_
