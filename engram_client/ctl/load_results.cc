#include "engram_client/ctl/load_results.h"

namespace engram::ctl {
namespace {

constexpr int kSomeFailed = 2;
constexpr int kWrongContent = 3;

}  // namespace

void LoadCounts::Add(const LoadCounts& other) {
  calls += other.calls;
  ok += other.ok;
  failed += other.failed;
  wrong += other.wrong;
  not_sent += other.not_sent;
  units += other.units;
  bytes += other.bytes;
  units_checked += other.units_checked;
  server_calls += other.server_calls;
  wire_bytes += other.wire_bytes;
  latency.Merge(other.latency);
}

LoadCounts LoadResults::Sum() const {
  LoadCounts sum;
  for (const LoadCounts& size : sizes) sum.Add(size);
  return sum;
}

int LoadExitCode(const LoadResults& results) {
  if (results.mismatch.has_value()) return kWrongContent;
  // Who ends a run does not wait for its last calls.
  const bool lost = results.unfinished > 0 && !results.interrupted;
  return results.Sum().failed > 0 || lost ? kSomeFailed : 0;
}

}  // namespace engram::ctl
