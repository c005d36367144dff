#ifndef ENGRAM_ENGRAM_CLIENT_CTL_VERIFY_REPORT_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_VERIFY_REPORT_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "engram_client/ctl/verify_partitions.h"

namespace engram::ctl {

// What `engramctl verify` says.
struct VerifyReport {
  std::string version;    // of the table
  std::string where;      // the checkpoint, or the store
  uint64_t expected = 0;  // partitions of the layers that are looked at
  uint64_t asked = 0;     // those of them that are there
  absl::Duration elapsed;
  VerifyResult result;
};

// Exit codes, beside that of an interrupted run.
inline constexpr int kAllSound = 0;
inline constexpr int kDamageFound = 1;
inline constexpr int kCannotVerify = 2;  // some or all of it
int ExitCodeOf(const VerifyReport& report);

// A line for each partition that is bad, and one with the sums.
std::string VerifyAsText(const VerifyReport& report);
// verify_report.cc describes it.
std::string VerifyAsJson(const VerifyReport& report);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_VERIFY_REPORT_H_
