#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_FLAGS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/ids.h"
#include "engram_client/ctl/load_engine.h"
#include "engram_client/ctl/load_sizes.h"

namespace engram::ctl {

// The command line of `engramctl load`.
struct LoadFlags {
  std::string tables;
  std::string workers;
  std::string checkpoint;
  std::optional<uint64_t> synthetic;

  double rate = 100;
  std::string arrivals = "poisson";
  std::string rows = "24";
  std::string tokens = "1";
  double zipf = 0;
  std::vector<uint32_t> layers;
  uint64_t seed = 1;
  double duration_seconds = 10;
  double warmup_seconds = 1;
  uint32_t deadline_ms = 1000;
  uint32_t max_in_flight = 0;  // 0: 256 gathers or 32 steps
  uint32_t threads = 2;
  uint32_t check_threads = 1;
  uint32_t max_memory_mb = 4096;
  std::string check = "all";
  std::string json;
  double timeout_seconds = 10;

  bool want_crc32c = false;
  uint32_t poll_threads = 0;
  uint64_t row_cache_bytes = 0;
  std::string mode = "forward";
  std::string what = "streams";
  uint32_t inputs = 4;

  bool steps() const { return !workers.empty(); }
};

// What the flags mean.
struct LoadPlan {
  LoadFlags flags;
  std::vector<std::string> addresses;
  std::string members;  // instead of addresses: who the table servers are now
  std::vector<LayerId> layers;
  uint64_t sample_step = 1;
  LoadEngine::Options engine;

  const std::vector<LoadSize>& sizes() const { return engine.schedule.sizes; }
};

// `flags` must outlive the parsing.
void AddLoadFlags(CLI::App& command, LoadFlags& flags);

// INVALID_ARGUMENT naming flag, value and limit: addresses, a mix or a check
// that cannot be read, nothing to send to or to compare with.
absl::StatusOr<LoadPlan> MakeLoadPlan(const LoadFlags& flags);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_FLAGS_H_
