#ifndef ENGRAM_ENGRAM_CLIENT_CTL_HEAT_REPORT_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_HEAT_REPORT_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engram_client/ctl/heat_merge.h"
#include "engram_client/ctl/heat_reader.h"
#include "engram_client/ctl/heat_summary.h"

namespace engram::ctl {

// All that `engramctl heat` has to say.
struct HeatReport {
  absl::Time time;          // when it ended
  absl::Duration duration;  // that was asked for
  std::vector<ServerHeat> servers;
  ClusterHeat heat;
  HeatSummary summary;
};

// For people.
std::string HeatAsText(const HeatReport& report);

// For programs; heat_json.cc describes it.
std::string HeatAsJson(const HeatReport& report);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_HEAT_REPORT_H_
