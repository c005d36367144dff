// engram-bench-gather: the load driver of the gather benchmark. Connects to
// servers that are running already, lets every contestant take its turn in
// every cell and round, and writes what it measured.
//
//   engram-bench-gather --spec SPEC.json --out RESULT.json

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/atomic_file.h"
#include "core/base/log.h"
#include "core/base/malloc_tuning.h"
#include "core/base/page_buffer.h"
#include "core/base/read_file.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "tests/bench/measure.h"
#include "tests/bench/run_spec.h"

namespace engram::bench {
namespace {

using nlohmann::json;

constexpr size_t kMaxSpecBytes = 1 << 20;
constexpr double kBytesPerGb = 1e9;
constexpr absl::Duration kWarmUp = absl::Milliseconds(30);
// Rows in flight while warming up: enough to open connections and windows,
// without waiting for long queues of the slow ones.
constexpr size_t kWarmUpRows = 200'000;
constexpr size_t kMinVerifiedRows = 4096;  // a cell

struct Contestant {
  const ContestantSpec* spec = nullptr;
  std::unique_ptr<GatherContestant> gatherer;
  absl::StatusOr<CpuMeter> servers = CpuMeter();
};

// One contestant's record of one cell.
struct Record {
  uint64_t verified_rows = 0;
  absl::Status status;
  std::vector<RoundResult> rounds;
};

// Nothing a second is no rate: contestants that move no rows have no cost.
json PerGb(double core_seconds, const RoundResult& round, size_t row_bytes) {
  if (round.rows == 0) return nullptr;
  return core_seconds /
         (static_cast<double>(round.rows * row_bytes) / kBytesPerGb);
}

json RoundJson(const RoundResult& round, size_t row_bytes) {
  return {
      {"gathers", round.gathers},
      {"rows_per_s", static_cast<double>(round.rows) / round.seconds},
      {"p50_us", Quantile(round.latencies_us, 0.5)},
      {"p99_us", Quantile(round.latencies_us, 0.99)},
      {"p999_us", Quantile(round.latencies_us, 0.999)},
      {"client_core_s_per_gb",
       PerGb(round.client_core_seconds, round, row_bytes)},
      {"server_core_s_per_gb",
       PerGb(round.server_core_seconds, round, row_bytes)},
  };
}

// Percentiles over the gathers of all rounds together.
json PooledJson(const std::vector<RoundResult>& rounds) {
  std::vector<float> all;
  for (const RoundResult& round : rounds) {
    all.insert(all.end(), round.latencies_us.begin(), round.latencies_us.end());
  }
  std::sort(all.begin(), all.end());
  return {{"gathers", all.size()},
          {"p50_us", Quantile(all, 0.5)},
          {"p99_us", Quantile(all, 0.99)},
          {"p999_us", Quantile(all, 0.999)}};
}

json RecordJson(const std::string& contestant, const Cell& cell,
                const Record& record, size_t row_bytes) {
  json rounds = json::array();
  for (const RoundResult& round : record.rounds) {
    rounds.push_back(RoundJson(round, row_bytes));
  }
  return {{"contestant", contestant},
          {"ids", cell.ids},
          {"rows", cell.rows},
          {"in_flight", cell.in_flight},
          {"verified_rows", record.verified_rows},
          {"error", record.status.ok() ? "" : record.status.ToString()},
          {"rounds", std::move(rounds)},
          {"pooled", PooledJson(record.rounds)}};
}

class Run {
 public:
  explicit Run(RunSpec spec) : spec_(std::move(spec)) {}

  absl::Status Prepare() {
    Say("reading the rows that everything is compared with");
    ENGRAM_ASSIGN_OR_RETURN(table_, RowTable::Load(spec_.checkpoint_dir));
    size_t most_rows = 0;
    for (const Cell& cell : spec_.cells) {
      most_rows = std::max(most_rows, cell.rows * cell.in_flight);
      const auto key = std::make_pair(cell.ids, cell.rows);
      if (pools_.count(key) != 0) continue;
      ENGRAM_ASSIGN_OR_RETURN(pools_[key],
                              BatchPool::Draw(table_, cell.ids, cell.rows));
    }
    ENGRAM_ASSIGN_OR_RETURN(
        out_, PageBuffer::Allocate(most_rows * table_.row_bytes()));
    for (const ContestantSpec& spec : spec_.contestants) {
      ENGRAM_RETURN_IF_ERROR(Annotate(Connect(spec), spec.name));
    }
    return absl::OkStatus();
  }

  // Round 0 checks every byte and is not timed. The order of the contestants
  // moves on with each round, so that none always follows the same one.
  void Measure() {
    records_.resize(spec_.cells.size() * contestants_.size());
    for (size_t round = 0; round <= spec_.rounds; ++round) {
      Say(round == 0 ? "checking every byte"
                     : absl::StrCat("round ", round, " of ", spec_.rounds));
      for (size_t cell = 0; cell < spec_.cells.size(); ++cell) {
        for (size_t i = 0; i < contestants_.size(); ++i) {
          TakeTurn(round, cell, (i + round) % contestants_.size());
        }
      }
    }
  }

  json Result() const {
    json cells = json::array();
    for (size_t cell = 0; cell < spec_.cells.size(); ++cell) {
      for (size_t i = 0; i < contestants_.size(); ++i) {
        const ContestantSpec& spec = *contestants_[i].spec;
        if (!spec.TakesPartIn(spec_.cells[cell])) continue;
        cells.push_back(RecordJson(spec.name, spec_.cells[cell],
                                   records_[cell * contestants_.size() + i],
                                   table_.row_bytes()));
      }
    }
    return {{"row_bytes", table_.row_bytes()},
            {"table_rows", table_.row_count()},
            {"table_bytes", size_t{table_.row_count()} * table_.row_bytes()},
            {"table_huge_page_bytes", table_.huge_page_bytes()},
            {"cells", std::move(cells)}};
  }

 private:
  static void Say(const std::string& what) {
    std::fprintf(stderr, "gather: %s\n", what.c_str());
  }

  absl::Status Connect(const ContestantSpec& spec) {
    Say("connecting " + spec.name);
    Contestant contestant{&spec};
    ENGRAM_ASSIGN_OR_RETURN(contestant.gatherer, MakeContestant(spec.options));
    contestant.servers = CpuMeter::Create(spec.processes);
    ENGRAM_RETURN_IF_ERROR(contestant.servers.status());
    ENGRAM_RETURN_IF_ERROR(contestant.gatherer->Connect(table_));
    contestants_.push_back(std::move(contestant));
    return absl::OkStatus();
  }

  void TakeTurn(size_t round, size_t cell_index, size_t contestant_index) {
    const Cell& cell = spec_.cells[cell_index];
    const Contestant& contestant = contestants_[contestant_index];
    if (!contestant.spec->TakesPartIn(cell)) return;
    Record& record =
        records_[cell_index * contestants_.size() + contestant_index];
    // What failed once would fail again, at the price of its deadlines.
    if (!record.status.ok()) return;
    const absl::Status status =
        round == 0 ? Verify(contestant, cell, record)
                   : MeasureOnce(contestant, cell, round, record);
    contestant.gatherer->Rest();
    if (status.ok()) return;
    Say(absl::StrCat(contestant.spec->name, ", ", cell.ids, ", ", cell.rows,
                     " rows, ", cell.in_flight,
                     " in flight: ", status.ToString()));
    record.status.Update(status);
  }

  LoadOptions Options(const Cell& cell, size_t round) {
    return {.in_flight = cell.in_flight,
            .duration = spec_.duration,
            .first_batch = round * 7919,
            .out = out_.bytes().subspan(
                0, cell.in_flight * cell.rows * table_.row_bytes())};
  }

  absl::Status Verify(const Contestant& contestant, const Cell& cell,
                      Record& record) {
    ENGRAM_RETURN_IF_ERROR(contestant.gatherer->Prepare(cell.in_flight));
    ENGRAM_ASSIGN_OR_RETURN(
        record.verified_rows,
        VerifyRows(*contestant.gatherer, table_, PoolOf(cell),
                   std::max(cell.in_flight + 2, kMinVerifiedRows / cell.rows),
                   Options(cell, 0)));
    return absl::OkStatus();
  }

  absl::Status MeasureOnce(const Contestant& contestant, const Cell& cell,
                           size_t round, Record& record) {
    const BatchPool& pool = PoolOf(cell);
    ENGRAM_RETURN_IF_ERROR(contestant.gatherer->Prepare(cell.in_flight));
    LoadOptions options = Options(cell, round);
    LoadOptions warm_up = options;
    warm_up.duration = kWarmUp;
    warm_up.in_flight =
        std::clamp(kWarmUpRows / cell.rows, size_t{1}, cell.in_flight);
    warm_up.out = out_.bytes().subspan(
        0, warm_up.in_flight * cell.rows * table_.row_bytes());
    ENGRAM_RETURN_IF_ERROR(
        RunLoad(*contestant.gatherer, pool, *contestant.servers, warm_up)
            .status());
    options.first_batch += 101;
    ENGRAM_ASSIGN_OR_RETURN(
        RoundResult result,
        RunLoad(*contestant.gatherer, pool, *contestant.servers, options));
    if (contestant.spec->options.kind.rfind("empty_", 0) == 0) result.rows = 0;
    record.rounds.push_back(std::move(result));
    return absl::OkStatus();
  }

  const BatchPool& PoolOf(const Cell& cell) const {
    return pools_.at({cell.ids, cell.rows});
  }

  const RunSpec spec_;
  RowTable table_;
  std::map<std::pair<std::string, size_t>, BatchPool> pools_;
  PageBuffer out_;
  std::vector<Record> records_;          // [cell][contestant]
  std::vector<Contestant> contestants_;  // last: they write to out_
};

absl::Status Main(const std::string& spec_path, const std::string& out_path) {
  ENGRAM_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(spec_path, kMaxSpecBytes));
  absl::StatusOr<RunSpec> spec = ParseRunSpec(text);
  if (!spec.ok()) return Annotate(spec.status(), spec_path);
  Run run(*std::move(spec));
  ENGRAM_RETURN_IF_ERROR(run.Prepare());
  run.Measure();
  return WriteFileAtomically(out_path, run.Result().dump());
}

}  // namespace
}  // namespace engram::bench

int main(int argc, char** argv) {
  engram::InitLogging("engram-bench-gather");
  engram::TuneMallocForLargeMessages();
  spdlog::set_level(spdlog::level::warn);  // every connection is news to it
  CLI::App app("Load driver of the gather benchmark; see tests/bench/run.");
  std::string spec_path;
  std::string out_path;
  app.add_option("--spec", spec_path, "what to run")->required();
  app.add_option("--out", out_path, "what was measured")->required();
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = engram::bench::Main(spec_path, out_path);
  if (status.ok()) return 0;
  std::fprintf(stderr, "engram-bench-gather: %s\n", status.ToString().c_str());
  return 1;
}
