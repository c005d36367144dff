// engramctl load: open-loop load of gathers or steps, every answer checked.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "core/base/atomic_file.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/rpc/shutdown_signal.h"
#include "engram_client/compute_client.h"
#include "engram_client/ctl/commands.h"
#include "engram_client/ctl/load_engine.h"
#include "engram_client/ctl/load_flags.h"
#include "engram_client/ctl/load_gathers.h"
#include "engram_client/ctl/load_reference.h"
#include "engram_client/ctl/load_report.h"
#include "engram_client/ctl/load_steps.h"
#include "engram_client/table_client.h"

namespace engram::ctl {
namespace {

// What load is put on, with the client under it.
struct Target {
  std::unique_ptr<TableClient> tables;
  std::unique_ptr<ComputeClient> workers;
  std::unique_ptr<LoadTarget> load;
  std::optional<LoadMismatch> mismatch;  // seen before the load
};

uint64_t MaxMemoryBytes(const LoadPlan& plan) {
  return uint64_t{plan.flags.max_memory_mb} * 1'000'000;
}

absl::StatusOr<Target> ConnectToTables(const LoadPlan& plan) {
  const LoadFlags& flags = plan.flags;
  std::unique_ptr<RowReference> reference;
  TableClient::Options options;
  options.addresses = plan.addresses;
  options.members = plan.members;
  options.connect_timeout = absl::Seconds(flags.timeout_seconds);
  options.max_gathers_in_flight = plan.engine.max_in_flight;
  options.want_crc32c = flags.want_crc32c;
  options.poll_threads = flags.poll_threads;
  options.row_cache_bytes = flags.row_cache_bytes;
  if (!flags.checkpoint.empty()) {
    ENGRAM_ASSIGN_OR_RETURN(reference,
                            OpenCheckpointReference(flags.checkpoint));
    options.expected_version = reference->version();
  }
  Target target;
  ENGRAM_ASSIGN_OR_RETURN(target.tables,
                          TableClient::Create(std::move(options)));
  if (flags.synthetic.has_value()) {
    ENGRAM_ASSIGN_OR_RETURN(
        reference,
        MakeSyntheticReference(target.tables->table(), *flags.synthetic));
  }
  ENGRAM_RETURN_IF_ERROR(target.tables->WaitUntilComplete(
      absl::Now() + absl::Seconds(flags.timeout_seconds)));
  ENGRAM_ASSIGN_OR_RETURN(
      target.load,
      GatherLoad::Create({.sizes = plan.sizes(),
                          .layers = plan.layers,
                          .zipf_exponent = flags.zipf,
                          .sample_step = plan.sample_step,
                          .slots = LoadEngine::SlotCount(plan.engine),
                          .max_memory_bytes = MaxMemoryBytes(plan)},
                         target.tables.get(), std::move(reference)));
  return target;
}

absl::Status CheckVersion(const std::string& checkpoint,
                          const std::string& served) {
  if (checkpoint.empty()) return absl::OkStatus();
  ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<RowReference> reference,
                          OpenCheckpointReference(checkpoint));
  if (reference->version() == served) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the workers compute with table ", served, ", but ",
                   checkpoint, " is ", reference->version()));
}

absl::StatusOr<Target> ConnectToWorkers(const LoadPlan& plan) {
  const LoadFlags& flags = plan.flags;
  ComputeClient::Options options;
  options.addresses = plan.addresses;
  options.connect_timeout = absl::Seconds(flags.timeout_seconds);
  Target target;
  ENGRAM_ASSIGN_OR_RETURN(target.workers,
                          ComputeClient::Create(std::move(options)));
  ENGRAM_RETURN_IF_ERROR(
      CheckVersion(flags.checkpoint, target.workers->model().version));
  ENGRAM_ASSIGN_OR_RETURN(
      std::unique_ptr<StepLoad> load,
      StepLoad::Create(
          {.sizes = plan.sizes(),
           .layers = plan.layers,
           .mode =
               flags.mode == "apply" ? StepMode::kApply : StepMode::kForward,
           .what = flags.what == "streams" ? StepReturn::kStreams
                                           : StepReturn::kContribution,
           .inputs = flags.inputs,
           .sample_step = plan.sample_step,
           .seed = flags.seed,
           .slots = LoadEngine::SlotCount(plan.engine),
           .max_memory_bytes = MaxMemoryBytes(plan)},
          target.workers.get()));
  ENGRAM_ASSIGN_OR_RETURN(target.mismatch,
                          load->Learn(absl::Seconds(flags.timeout_seconds)));
  target.load = std::move(load);
  return target;
}

LoadResults PutLoad(LoadEngine& engine, const ShutdownSignal& signal) {
  const LoadEngine::Hooks hooks = {
      .wait =
          [&signal](absl::Duration time) {
            return signal.WaitUntil(absl::Now() + time);
          },
      .on_second =
          [](const LoadSecond& second) {
            std::fprintf(stderr, "%s\n", LoadSecondAsText(second).c_str());
          }};
  return engine.Run(hooks);
}

// The file is opened before the load, so that a long run is not for nothing.
absl::Status WriteJson(AtomicFile& file, const std::string& json) {
  ENGRAM_RETURN_IF_ERROR(file.Append(
      {reinterpret_cast<const std::byte*>(json.data()), json.size()}));
  return file.Commit();
}

absl::Status Report(const LoadPlan& plan, const LoadTarget& load,
                    const LoadResults& results, AtomicFile* json_file) {
  const LoadSubject subject = {load.unit(), load.version(),
                               load.client_counts()};
  const std::string text = LoadAsText(plan, subject, results);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (results.mismatch.has_value()) {
    std::fprintf(stderr, "engramctl: %s\n", results.mismatch->text.c_str());
  }
  if (json_file == nullptr) return absl::OkStatus();
  return Annotate(WriteJson(*json_file, LoadAsJson(plan, subject, results)),
                  plan.flags.json);
}

absl::StatusOr<int> RunLoad(const LoadFlags& flags) {
  const ShutdownSignal signal;
  ENGRAM_ASSIGN_OR_RETURN(const LoadPlan plan, MakeLoadPlan(flags));
  std::unique_ptr<AtomicFile> json_file;
  if (!flags.json.empty()) {
    ENGRAM_ASSIGN_OR_RETURN(json_file, AtomicFile::Create(flags.json));
  }
  ENGRAM_ASSIGN_OR_RETURN(const Target target, flags.steps()
                                                   ? ConnectToWorkers(plan)
                                                   : ConnectToTables(plan));

  LoadEngine engine(plan.engine, target.load.get());
  LoadResults results;
  results.sizes.resize(plan.sizes().size());
  results.mismatch = target.mismatch;
  if (!target.mismatch.has_value()) results = PutLoad(engine, signal);
  ENGRAM_RETURN_IF_ERROR(Report(plan, *target.load, results, json_file.get()));
  ENGRAM_RETURN_IF_ERROR(results.error);
  const int exit_code = LoadExitCode(results);
  if (results.unfinished > 0) {
    // Whoever does not end would be waited for below.
    std::fflush(stdout);
    std::_Exit(exit_code);
  }
  return exit_code;
}

constexpr char kFooter[] =
    R"(Open loop: calls come by the schedule, whatever becomes of those before, and a
latency is counted from the time at which the schedule had the call. What comes
while --max-in-flight calls are unanswered or unchecked is counted as not sent,
never delayed. A line a second goes to stderr, the summary to stdout.

Gathers: row ids are drawn anew for each call (--zipf), rows are compared to the
bit with the checkpoint or the synthetic source. Buffers take (--max-in-flight +
--threads) x the largest gather (rows x layers x (row bytes + 4)).

Steps: each of --inputs steps of a size (bf16 streams, one sequence) is asked for
twice before the load; every later answer is compared to the bit with the first.
That holds for workers of one kind, whatever the split or the load. What the rows
are is checked by gathers. Each step in flight has a thread, and buffers for the
results of the largest step.

Latencies and rates are of the calls that were sent after the warm-up and ended
well; those that failed have their own. SIGINT ends the run early, with the
summary.

Exit code: 0 nothing failed, 1 wrong usage or could not start, 2 some calls
failed, 3 an answer was wrong (ends the run at once and says which).

Examples:
  engramctl load --tables 127.0.0.1:7001,127.0.0.1:7002 --checkpoint DIR \
    --rate 500 --rows 24x70,1536x25,49152x5 --zipf 1 --json load.json
  engramctl load --tables 127.0.0.1:7001 --synthetic 1 --rate 2000 --deadline-ms 50
  engramctl load --workers 127.0.0.1:7100 --rate 20 --tokens 1x90,64x10)";

}  // namespace

void AddLoad(CLI::App& app, Action& action) {
  auto flags = std::make_shared<LoadFlags>();
  CLI::App* command = app.add_subcommand(
      kLoadCommand, "Put checked load on table servers or compute workers");
  AddLoadFlags(*command, *flags);
  command->footer(kFooter);
  command->callback(
      [flags, &action] { action = [flags] { return RunLoad(*flags); }; });
}

}  // namespace engram::ctl
