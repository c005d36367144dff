#ifndef ENGRAM_ENGRAM_CLIENT_CTL_PLAN_REPORT_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_PLAN_REPORT_H_

#include <string>
#include <vector>

#include "engram_client/ctl/plan_moves.h"

namespace engram::ctl {

// A plan with what it was made from.
struct PlanReport {
  std::string version;  // of the table; empty: made up from a preset
  MovePlan plan;
  std::vector<std::string> notes;  // what to bear in mind
};

// Tables for people.
std::string PlanAsText(const PlanReport& report);
// One JSON object, for programs.
std::string PlanAsJson(const PlanReport& report);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_PLAN_REPORT_H_
