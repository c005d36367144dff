// engram-bench-cold: one contestant whose table is larger than its memory, in a
// process of its own, so that a limit on that holds for it alone.
//
//   engram-bench-cold --contestant NAME --dir DIR --bytes N --prepare
//   engram-bench-cold --contestant NAME --dir DIR --bytes N --cache-bytes N
//
// The first writes the table. The second prints "ready" and takes turns, each a
// line of JSON, until there are no more:
//
//   {"rows": 1536, "in_flight": 8, "fan_out": 1, "gathers": 1000, "zipf": 1.0,
//    "seed": 1}
//
// and answers each with a line of what was measured.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "tests/bench/cold_contestant.h"
#include "tests/bench/gather_load.h"

namespace engram::bench {
namespace {

using nlohmann::json;

constexpr size_t kCheckEvery = 16;

struct Flags {
  std::string contestant;
  uint64_t bytes = 0;
  bool prepare = false;
  ColdOptions options;
};

std::vector<ColdKind> Kinds() {
  return {ColdStack(), ColdMmap(), ColdRocksDbRows(), ColdRocksDbBlocks()};
}

// What this process had read from the disk until now; 0 where nobody counts.
uint64_t DiskBytes() {
  std::ifstream file("/proc/self/io");
  std::string name;
  uint64_t value = 0;
  while (file >> name >> value) {
    if (name == "read_bytes:") return value;
  }
  return 0;
}

absl::StatusOr<json> TakeTurn(ColdContestant& contestant,
                              const SyntheticTable& table, const json& asked) {
  contestant.SetFanOut(asked.value("fan_out", size_t{1}));
  const auto counts_before = contestant.cache_counts();
  const uint64_t disk_before = DiskBytes();
  ENGRAM_ASSIGN_OR_RETURN(
      const GatherTurn turn,
      RunGathers(contestant, table,
                 {.rows = asked.at("rows").get<size_t>(),
                  .in_flight = asked.at("in_flight").get<size_t>(),
                  .zipf = asked.at("zipf").get<double>(),
                  .seed = asked.at("seed").get<uint64_t>(),
                  .gathers = asked.at("gathers").get<uint64_t>(),
                  .check_every = kCheckEvery}));
  const double rows = turn.rows_per_s * turn.seconds;
  json told = {{"seconds", turn.seconds},
               {"rows_per_s", turn.rows_per_s},
               {"core_us_per_row", turn.core_us_per_row},
               {"p50_ms", Quantile(turn.latencies_us, 0.5) * 1e-3},
               {"p99_ms", Quantile(turn.latencies_us, 0.99) * 1e-3},
               {"disk_bytes_per_row",
                static_cast<double>(DiskBytes() - disk_before) / rows}};
  if (const auto counts = contestant.cache_counts(); counts.has_value()) {
    const auto hits = static_cast<double>(counts->hits - counts_before->hits);
    const auto misses =
        static_cast<double>(counts->misses - counts_before->misses);
    told["hit_ratio"] = hits / (hits + misses);
  }
  return told;
}

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

absl::Status Main(const Flags& flags) {
  ENGRAM_ASSIGN_OR_RETURN(const SyntheticTable table,
                          SyntheticTable::Create(flags.bytes));
  for (const ColdKind& kind : Kinds()) {
    if (flags.contestant != kind.name) continue;
    if (flags.prepare) return kind.prepare(table, flags.options.dir);
    ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<ColdContestant> contestant,
                            kind.open(table, flags.options));
    Say("ready");
    for (std::string line; std::getline(std::cin, line);) {
      ENGRAM_ASSIGN_OR_RETURN(const json told,
                              TakeTurn(*contestant, table, json::parse(line)));
      Say(told.dump());
    }
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("no contestant is named " +
                                    flags.contestant);
}

}  // namespace
}  // namespace engram::bench

int main(int argc, char** argv) {
  engram::InitLogging("engram-bench-cold");
  CLI::App app("A table that is larger than the memory it may take.");
  engram::bench::Flags flags;
  app.add_option("--contestant", flags.contestant,
                 "stack, mmap, rocksdb_rows or rocksdb_blocks")
      ->required();
  app.add_option("--dir", flags.options.dir, "of its files")->required();
  app.add_option("--bytes", flags.bytes, "of rows")->required();
  app.add_flag("--prepare", flags.prepare, "only write the table");
  app.add_option("--cache-bytes", flags.options.cache_bytes,
                 "of a cache in the process");
  app.add_option("--threads", flags.options.threads, "that read");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = engram::bench::Main(flags);
  if (status.ok()) return 0;
  std::fprintf(stderr, "engram-bench-cold: %s\n", status.ToString().c_str());
  return 1;
}
