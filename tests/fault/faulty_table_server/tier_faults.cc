#include "tests/fault/faulty_table_server/tier_faults.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace engram::fault {
namespace {

constexpr uint64_t kMaxFactor = 1'000'000;
constexpr uint64_t kMaxRowsPerS = 1'000'000'000;

absl::StatusOr<absl::StatusCode> CodeOf(const std::string& name) {
  for (int code = 1; code <= 16; ++code) {
    const auto status_code = static_cast<absl::StatusCode>(code);
    if (absl::StatusCodeToString(status_code) == name) return status_code;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is not the name of an error"));
}

absl::Status ReadSlow(const Command& command, uint64_t& slow_factor) {
  ENGRAM_RETURN_IF_ERROR(command.Expect({"FACTOR"}));
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t factor, command.Number(0, kMaxFactor));
  slow_factor = std::max<uint64_t>(1, factor);
  return absl::OkStatus();
}

absl::Status ReadFail(const Command& command, double& share,
                      absl::StatusCode& code) {
  ENGRAM_RETURN_IF_ERROR(command.Expect({"SHARE", "CODE"}));
  ENGRAM_ASSIGN_OR_RETURN(share, command.Share(0));
  ENGRAM_ASSIGN_OR_RETURN(const std::string name, command.Word(1));
  ENGRAM_ASSIGN_OR_RETURN(code, CodeOf(name));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> TierFaults::Obey(const Command& command) {
  MutexLock lock(&mutex_);
  Settings changed = settings_;
  ENGRAM_RETURN_IF_ERROR(Change(command, changed));
  settings_ = changed;
  busy_until_ = absl::InfinitePast();
  ++switches_;
  switched_.NotifyAll();
  return std::string();
}

absl::Status TierFaults::Change(const Command& command, Settings& settings) {
  if (command.name() == "flip") {
    ENGRAM_RETURN_IF_ERROR(command.Expect({"SHARE"}));
    ENGRAM_ASSIGN_OR_RETURN(settings.flip_share, command.Share(0));
    return absl::OkStatus();
  }
  if (command.name() == "slow") return ReadSlow(command, settings.slow_factor);
  if (command.name() == "fail") {
    return ReadFail(command, settings.fail_share, settings.fail_code);
  }
  if (command.name() == "fetch_slow") {
    return ReadSlow(command, settings.fetch_slow_factor);
  }
  if (command.name() == "fetch_fail") {
    return ReadFail(command, settings.fetch_fail_share,
                    settings.fetch_fail_code);
  }
  if (command.name() == "capacity") {
    ENGRAM_RETURN_IF_ERROR(command.Expect({"ROWS_PER_S"}));
    ENGRAM_ASSIGN_OR_RETURN(settings.rows_per_s,
                            command.Number(0, kMaxRowsPerS));
    return absl::OkStatus();
  }
  if (command.name() == "clear") {
    ENGRAM_RETURN_IF_ERROR(command.Expect({}));
    settings = {};
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat("there is no command '", command.name(), "'"));
}

TierFaults::Plan TierFaults::Next(size_t rows, absl::Time now) {
  MutexLock lock(&mutex_);
  Plan plan;
  if (std::bernoulli_distribution(settings_.fail_share)(random_)) {
    plan.failure = absl::Status(settings_.fail_code, "a fault of the tier");
    return plan;
  }
  plan.slow_factor = static_cast<double>(settings_.slow_factor);
  plan.flip_share = settings_.flip_share;
  plan.seed = random_();
  plan.earliest = now;
  plan.switches = switches_;
  if (settings_.rows_per_s > 0) {
    busy_until_ = std::max(busy_until_, now) +
                  absl::Seconds(static_cast<double>(rows) /
                                static_cast<double>(settings_.rows_per_s));
    plan.earliest = busy_until_;
  }
  return plan;
}

TierFaults::Plan TierFaults::NextFetch() {
  MutexLock lock(&mutex_);
  Plan plan;
  if (std::bernoulli_distribution(settings_.fetch_fail_share)(random_)) {
    plan.failure =
        absl::Status(settings_.fetch_fail_code, "a fault of the disk");
  }
  plan.slow_factor = static_cast<double>(settings_.fetch_slow_factor);
  plan.switches = switches_;
  return plan;
}

void TierFaults::WaitUntil(absl::Time until, uint64_t switches) {
  MutexLock lock(&mutex_);
  while (switches_ == switches && switched_.WaitUntil(&mutex_, until)) {
  }
}

}  // namespace engram::fault
