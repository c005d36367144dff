#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_REPORT_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_REPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engram_client/ctl/load_flags.h"
#include "engram_client/ctl/load_results.h"

namespace engram::ctl {

// What the load was put on, as LoadTarget says it.
struct LoadSubject {
  std::string unit;
  std::string version;
  std::vector<std::pair<std::string, uint64_t>> client_counts;
};

// One line, without its end: what happened in one second.
std::string LoadSecondAsText(const LoadSecond& second);

// The summary for people: sizes, failures, and whether the load itself was on
// time.
std::string LoadAsText(const LoadPlan& plan, const LoadSubject& subject,
                       const LoadResults& results);

// The same for programs, with histograms and every second; load_json.cc says
// what it looks like.
std::string LoadAsJson(const LoadPlan& plan, const LoadSubject& subject,
                       const LoadResults& results);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_REPORT_H_
