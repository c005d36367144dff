// engram-bench-store: the local stores against each other on one disk, in one
// run, in turns; RocksDB with values of several shapes.
//
//   engram-bench-store --dir DIR [--bytes N] [--seconds S] [--json FILE]

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/atomic_file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "tests/bench/store_bench.h"

namespace engram::bench {
namespace {

struct Flags {
  StoreBench::Options bench;
  uint64_t bytes = 1'000'000'000;
  std::string json_path;
};

absl::Status Run(const Flags& flags, const std::string& scratch) {
  ENGRAM_ASSIGN_OR_RETURN(const SyntheticTable table,
                          SyntheticTable::Create(flags.bytes));
  StoreBench::Options options = flags.bench;
  options.dir = scratch;
  StoreBench bench(options, table);
  ENGRAM_RETURN_IF_ERROR(bench.Prepare());
  ENGRAM_RETURN_IF_ERROR(bench.Measure());
  const std::string text = bench.Result().dump(1);
  if (!flags.json_path.empty()) {
    return WriteFileAtomically(flags.json_path, text);
  }
  std::puts(text.c_str());
  return absl::OkStatus();
}

absl::Status Main(const Flags& flags) {
  const std::string scratch =
      absl::StrCat(flags.bench.dir, "/engram-bench-store.", getpid());
  std::error_code error;
  std::filesystem::create_directories(scratch, error);
  absl::Status status = Run(flags, scratch);
  std::filesystem::remove_all(scratch, error);
  return status;
}

}  // namespace
}  // namespace engram::bench

int main(int argc, char** argv) {
  engram::InitLogging("engram-bench-store");
  CLI::App app("Local stores against each other on one disk.");
  engram::bench::Flags flags;
  app.add_option("--dir", flags.bench.dir, "on the disk, not in memory")
      ->required();
  app.add_option("--bytes", flags.bytes, "of rows");
  app.add_option("--seconds", flags.bench.seconds, "of a turn");
  app.add_option("--rounds", flags.bench.rounds, "in turns");
  app.add_option("--only", flags.bench.only,
                 "flat and these: rocksdb_1, _15, _60")
      ->delimiter(',');
  app.add_option("--threads", flags.bench.threads, "that read");
  app.add_option("--json", flags.json_path, "what was measured");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = engram::bench::Main(flags);
  if (status.ok()) return 0;
  std::fprintf(stderr, "engram-bench-store: %s\n", status.ToString().c_str());
  return 1;
}
