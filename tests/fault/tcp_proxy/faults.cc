#include "tests/fault/tcp_proxy/faults.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace engram::fault {
namespace {

constexpr uint64_t kMaxMs = 3'600'000;
constexpr uint64_t kMaxBytesPerS = uint64_t{1} << 40;

absl::Status SetDelay(const Command& command, Faults& faults) {
  ENGRAM_RETURN_IF_ERROR(command.Expect({"UP", "DOWN"}));
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t up_ms, command.Number(0, kMaxMs));
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t down_ms, command.Number(1, kMaxMs));
  faults.up.delay = std::chrono::milliseconds(up_ms);
  faults.down.delay = std::chrono::milliseconds(down_ms);
  return absl::OkStatus();
}

absl::Status SetThrottle(const Command& command, Faults& faults) {
  ENGRAM_RETURN_IF_ERROR(
      command.Expect({"UP_BYTES_PER_S", "DOWN_BYTES_PER_S"}));
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t up, command.Number(0, kMaxBytesPerS));
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t down,
                          command.Number(1, kMaxBytesPerS));
  faults.up.bytes_per_s = up;
  faults.down.bytes_per_s = down;
  return absl::OkStatus();
}

absl::Status SetResetShare(const Command& command, Faults& faults) {
  ENGRAM_RETURN_IF_ERROR(command.Expect({"SHARE", "EVERY_MS"}));
  ENGRAM_ASSIGN_OR_RETURN(const double share, command.Share(0));
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t every_ms, command.Number(1, kMaxMs));
  if (every_ms == 0) {
    return absl::InvalidArgumentError("EVERY_MS is 0, the least is 1");
  }
  faults.reset_share = share;
  faults.reset_every = std::chrono::milliseconds(every_ms);
  return absl::OkStatus();
}

}  // namespace

absl::Status Apply(const Command& command, Faults& faults) {
  if (command.name() == "delay_ms") return SetDelay(command, faults);
  if (command.name() == "throttle") return SetThrottle(command, faults);
  if (command.name() == "reset_share") return SetResetShare(command, faults);
  if (command.name() == "stall") {
    ENGRAM_RETURN_IF_ERROR(command.Expect({"on|off"}));
    ENGRAM_ASSIGN_OR_RETURN(faults.stall, command.OnOff(0));
    return absl::OkStatus();
  }
  if (command.name() == "flip") {
    ENGRAM_RETURN_IF_ERROR(command.Expect({"SHARE"}));
    ENGRAM_ASSIGN_OR_RETURN(faults.flip_share, command.Share(0));
    return absl::OkStatus();
  }
  if (command.name() == "clear") {
    ENGRAM_RETURN_IF_ERROR(command.Expect({}));
    faults = {};
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat("there is no command '", command.name(), "'"));
}

}  // namespace engram::fault
