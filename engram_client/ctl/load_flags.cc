#include "engram_client/ctl/load_flags.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/flag_checks.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/rpc/address.h"
#include "engram_client/ctl/load_row_check.h"
#include "engram_client/ctl/table_addresses.h"
#include "engram_client/table_servers.h"

namespace engram::ctl {
namespace {

constexpr uint32_t kDefaultGathersInFlight = 256;
constexpr uint32_t kDefaultStepsInFlight = 32;
constexpr uint32_t kMaxStepsInFlight = 1024;
constexpr uint64_t kMaxRowsALayer = uint64_t{1} << 24;
constexpr uint64_t kMaxTokens = uint64_t{1} << 20;

CLI::Validator Number(double min, double max) {
  const auto check = [min, max](const std::string& text) -> std::string {
    double value = 0;
    if (absl::SimpleAtod(text, &value) && value >= min && value <= max) {
      return "";
    }
    return absl::StrCat(text, " is no number from ", min, " to ", max);
  };
  return CLI::Validator(check, absl::StrCat("from ", min, " to ", max));
}

// What there is to send to, and what only one of the two has.
void AddTargetFlags(CLI::App& command, LoadFlags& flags) {
  CLI::Option* tables = command.add_option(
      "--tables", flags.tables, absl::StrCat("gathers: ", kTablesHelp));
  CLI::Option* workers = command
                             .add_option("--workers,--worker", flags.workers,
                                         "steps: addresses of compute workers")
                             ->excludes(tables);
  CLI::Option* checkpoint = command.add_option(
      "--checkpoint", flags.checkpoint,
      "directory of the checkpoint: rows are compared with its files; servers "
      "and workers of another version are refused");
  command
      .add_option("--synthetic", flags.synthetic,
                  "seed of a table served with --source synthetic:SEED: rows "
                  "are compared with computed ones")
      ->check(WholeNumber(0, UINT64_MAX))
      ->excludes(checkpoint)
      ->excludes(workers);

  command
      .add_option("--rows", flags.rows,
                  "rows of each layer in a gather: N, or a mix of "
                  "ROWSxWEIGHT, as 24x70,1536x25,49152x5")
      ->capture_default_str()
      ->excludes(workers);
  command
      .add_option("--zipf", flags.zipf,
                  "exponent S of the row ids' distribution: rank r comes in "
                  "proportion to r^-S; 0: uniform")
      ->check(Number(0, 10))
      ->capture_default_str()
      ->excludes(workers);
  command
      .add_flag("--crc32c", flags.want_crc32c,
                "servers sum each reply, the client checks the sum")
      ->excludes(workers);
  command
      .add_option("--poll-threads", flags.poll_threads,
                  "threads of the table client; 0: one for each four cores")
      ->check(WholeNumber(0, 64))
      ->capture_default_str()
      ->excludes(workers);
  command
      .add_option("--row-cache-bytes", flags.row_cache_bytes,
                  "memory for rows that are asked for often; 0: none")
      ->check(WholeNumber(0, UINT64_MAX))
      ->capture_default_str()
      ->excludes(workers);

  command
      .add_option("--tokens", flags.tokens,
                  "tokens of a step: N, or a mix of TOKENSxWEIGHT")
      ->capture_default_str()
      ->excludes(tables);
  command.add_option("--mode", flags.mode, "apply or forward")
      ->check(CLI::IsMember({"apply", "forward"}))
      ->capture_default_str()
      ->excludes(tables);
  command
      .add_option("--return", flags.what,
                  "streams, or contribution (gate and value)")
      ->check(CLI::IsMember({"streams", "contribution"}))
      ->capture_default_str()
      ->excludes(tables);
  command
      .add_option("--inputs", flags.inputs,
                  "different steps of each size that come again and again")
      ->check(WholeNumber(1, 1024))
      ->capture_default_str()
      ->excludes(tables);
}

void AddScheduleFlags(CLI::App& command, LoadFlags& flags) {
  command.add_option("--rate", flags.rate, "calls a second")
      ->check(Number(0.001, 1e6))
      ->capture_default_str();
  command
      .add_option("--arrivals", flags.arrivals,
                  "poisson (independent callers) or even (equal gaps)")
      ->check(CLI::IsMember({"poisson", "even"}))
      ->capture_default_str();
  command
      .add_option("--layers", flags.layers,
                  "layer ids, all in one call (default: every layer)")
      ->delimiter(',')
      ->check(WholeNumber(0, UINT32_MAX));
  command
      .add_option("--seed", flags.seed,
                  "the same seed gives the same calls at the same times")
      ->check(WholeNumber(0, UINT64_MAX))
      ->capture_default_str();
  command
      .add_option("--duration-seconds", flags.duration_seconds,
                  "how long calls are sent and measured")
      ->check(Seconds(0.1, 86400))
      ->capture_default_str();
  command
      .add_option("--warmup-seconds", flags.warmup_seconds,
                  "before that: sent and checked, not measured")
      ->check(Seconds(0, 3600))
      ->capture_default_str();
  command
      .add_option("--deadline-ms", flags.deadline_ms,
                  "of each call, from when it is sent")
      ->check(WholeNumber(1, 3600000))
      ->capture_default_str();
}

void AddResourceFlags(CLI::App& command, LoadFlags& flags) {
  command
      .add_option("--max-in-flight", flags.max_in_flight,
                  "calls unanswered or unchecked at once; those that come "
                  "beyond it are counted as not sent (0: 256 gathers or 32 "
                  "steps)")
      ->check(WholeNumber(0, 65536))
      ->capture_default_str();
  command.add_option("--threads", flags.threads, "threads that send")
      ->check(WholeNumber(1, 64))
      ->capture_default_str();
  command
      .add_option("--check-threads", flags.check_threads,
                  "threads that compare what came")
      ->check(WholeNumber(1, 64))
      ->capture_default_str();
  command
      .add_option("--max-memory-mb", flags.max_memory_mb,
                  "limit for the buffers, which are there from the start")
      ->check(WholeNumber(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option("--check", flags.check,
                  "all, none, or sample:N (one row, or one step, in N)")
      ->capture_default_str();
  command.add_option("--json", flags.json,
                     "write the summary, histograms and seconds to this file");
  command
      .add_option("--timeout-seconds", flags.timeout_seconds,
                  "to connect, until every partition has a server, and for "
                  "each step before the load")
      ->check(Seconds(0.001, 86400))
      ->capture_default_str();
}

absl::Status ParseTarget(const LoadFlags& flags, LoadPlan& plan) {
  if (flags.tables.empty() && flags.workers.empty()) {
    return absl::InvalidArgumentError(
        "nothing to put load on: give --tables (gathers) or --workers (steps)");
  }
  if (flags.steps()) {
    auto workers = ParseAddressList(flags.workers);
    ENGRAM_RETURN_IF_ERROR(Annotate(workers.status(), "--workers"));
    plan.addresses = *std::move(workers);
    return absl::OkStatus();
  }
  auto tables = ParseTableServers(flags.tables);
  ENGRAM_RETURN_IF_ERROR(Annotate(tables.status(), "--tables"));
  plan.addresses = std::move(tables->addresses);
  plan.members = std::move(tables->members);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> SampleStepOf(const LoadFlags& flags) {
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t step, ParseCheck(flags.check));
  if (step == 0 || flags.steps() || !flags.checkpoint.empty() ||
      flags.synthetic.has_value()) {
    return step;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--check ", flags.check,
      " has nothing to compare rows with: give --checkpoint or --synthetic "
      "SEED, or --check none"));
}

absl::StatusOr<size_t> InFlight(const LoadFlags& flags) {
  if (!flags.steps()) {
    return flags.max_in_flight > 0 ? flags.max_in_flight
                                   : kDefaultGathersInFlight;
  }
  if (flags.max_in_flight > kMaxStepsInFlight) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max-in-flight is ", flags.max_in_flight,
                     "; each step in flight has a thread, and the limit is ",
                     kMaxStepsInFlight));
  }
  return flags.max_in_flight > 0 ? flags.max_in_flight : kDefaultStepsInFlight;
}

}  // namespace

void AddLoadFlags(CLI::App& command, LoadFlags& flags) {
  AddTargetFlags(command, flags);
  AddScheduleFlags(command, flags);
  AddResourceFlags(command, flags);
}

absl::StatusOr<LoadPlan> MakeLoadPlan(const LoadFlags& flags) {
  LoadPlan plan;
  plan.flags = flags;
  ENGRAM_RETURN_IF_ERROR(ParseTarget(flags, plan));
  ENGRAM_ASSIGN_OR_RETURN(plan.sample_step, SampleStepOf(flags));
  for (const uint32_t layer : flags.layers) {
    plan.layers.push_back(LayerId{layer});
  }

  LoadEngine::Options& engine = plan.engine;
  ENGRAM_ASSIGN_OR_RETURN(
      engine.schedule.sizes,
      flags.steps() ? ParseLoadSizes("--tokens", flags.tokens, kMaxTokens)
                    : ParseLoadSizes("--rows", flags.rows, kMaxRowsALayer));
  engine.schedule.arrivals =
      flags.arrivals == "even" ? Arrivals::kEven : Arrivals::kPoisson;
  engine.schedule.calls_per_second = flags.rate;
  engine.schedule.seed = flags.seed;
  engine.warmup = absl::Seconds(flags.warmup_seconds);
  engine.duration = absl::Seconds(flags.duration_seconds);
  engine.deadline = absl::Milliseconds(flags.deadline_ms);
  ENGRAM_ASSIGN_OR_RETURN(engine.max_in_flight, InFlight(flags));
  engine.threads = flags.threads;
  engine.check_threads = flags.check_threads;
  return plan;
}

}  // namespace engram::ctl
