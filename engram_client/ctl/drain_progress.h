#ifndef ENGRAM_ENGRAM_CLIENT_CTL_DRAIN_PROGRESS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_DRAIN_PROGRESS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engram/v1/table.pb.h"
#include "engram_client/ctl/rate_meter.h"

namespace engram::ctl {

// What becomes of a server that was told to leave, from what it says.
class DrainProgress {
 public:
  // `instance_id`: of the server that was told, at `now`.
  DrainProgress(std::string server_name, uint64_t instance_id, absl::Time now);

  enum class State {
    kUnderWay,
    kDone,       // it holds and answers for nothing any more
    kRestarted,  // and so it is back, or another server is at its address
    kLost,       // it has not answered for kMaxSilence
  };
  State Answered(const v1::ExchangeResponse& response, absl::Time now);
  State Silent(const absl::Status& why, absl::Time now);

  // One line: "t2: 812 of 2,930 partitions still to hand over, 105/s, 8 s
  // left; it waits for ...".
  std::string text(absl::Time now) const;

  static constexpr absl::Duration kMaxSilence = absl::Minutes(1);

 private:
  const std::string server_name_;
  const uint64_t instance_id_;
  absl::Time answered_at_;
  std::string silence_;      // why it said nothing; empty: it answered
  bool known_ = false;       // it has answered once
  uint64_t held_first_ = 0;  // partitions
  uint64_t held_ = 0;
  uint64_t lingering_ = 0;
  std::string waiting_for_;
  RateMeter handed_over_;
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_DRAIN_PROGRESS_H_
