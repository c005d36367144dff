#ifndef ENGRAM_ENGRAM_CLIENT_CTL_HEAT_RECORDINGS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_HEAT_RECORDINGS_H_

#include <grpcpp/client_context.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "engram_client/ctl/heat_reader.h"

namespace engram::ctl {

// RecordHeat on several servers at once, a thread each.
// Thread safety: all methods may be called concurrently.
class HeatRecordings {
 public:
  struct Options {
    absl::Duration duration;  // whole milliseconds
    uint64_t max_sampled_rows = 0;
    // For a server to say what it is, and to tell what it counted.
    absl::Duration timeout;
  };
  // Of all servers together.
  struct Progress {
    size_t recording = 0;     // have begun
    uint64_t elapsed_ms = 0;  // of the one that began last
    uint64_t lookups = 0;
    uint64_t sampled_rows = 0;
  };

  HeatRecordings(const std::vector<std::string>& addresses, Options options);
  ~HeatRecordings();  // cancels what is under way, on the servers too
  HeatRecordings(const HeatRecordings&) = delete;
  HeatRecordings& operator=(const HeatRecordings&) = delete;

  Progress progress() const;
  bool ended() const;

  // What each server counted, in the order of the addresses; with `error` set
  // where it failed. Blocks until all have ended; at most once.
  std::vector<ServerHeat> Take();

 private:
  struct Call {
    grpc::ClientContext context;  // of RecordHeat; to be cancelled
    bool ended = false;
    v1::RecordHeatResponse::Progress progress;
    bool recording = false;
    std::thread thread;
  };

  void Run(const std::string& address, size_t index);
  absl::Status Record(const std::string& address, size_t index,
                      HeatReader& reader);

  const Options options_;
  std::vector<ServerHeat> heats_;  // each of its thread until that has ended
  mutable Mutex mutex_;
  // The vector stays as it is.
  std::vector<std::unique_ptr<Call>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_HEAT_RECORDINGS_H_
