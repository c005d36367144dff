#ifndef ENGRAM_TESTS_BENCH_STORE_BENCH_H_
#define ENGRAM_TESTS_BENCH_STORE_BENCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "table_server/store/local_store.h"
#include "tests/bench/gather_load.h"
#include "tests/bench/synthetic_table.h"

namespace engram::bench {

// The local stores against each other on one disk, in turns: flat, and RocksDB
// with values of several shapes.
class StoreBench {
 public:
  struct Options {
    std::string dir;       // of this run alone; on the disk, not in memory
    double seconds = 0.5;  // a turn
    size_t threads = 32;   // that read
    size_t rounds = 3;
    // Beside flat: rocksdb_1, _15 and _60; empty: all.
    std::vector<std::string> only;
  };

  // `table` must outlive it.
  StoreBench(const Options& options, const SyntheticTable& table)
      : options_(options), table_(table) {}

  absl::Status Prepare();
  absl::Status Measure();
  nlohmann::json Result() const;

 private:
  struct Contestant {
    std::string name;
    std::unique_ptr<LocalStore> store;
    double put_mb_per_s = 0;
    std::vector<double> read_mb_per_s;           // [round], some at once
    std::vector<double> one_read_mb_per_s;       // [round]
    std::vector<std::vector<GatherTurn>> turns;  // [cell][round]
  };

  Contestant& Add(std::string name);
  absl::Status AddFlat();
  absl::Status AddRocks(const std::string& name, uint32_t rows);
  absl::Status PutAll(Contestant& contestant) const;
  absl::StatusOr<double> ReadAll(LocalStore& store, size_t at_once) const;
  absl::Status MeasureRound(size_t round);
  absl::Status ReadAsDd();
  nlohmann::json ResultOf(const Contestant& contestant) const;
  nlohmann::json ResultOf(const Contestant& contestant, size_t cell) const;

  const Options options_;
  const SyntheticTable& table_;
  std::vector<double> dd_mb_per_s_;  // [round]
  std::vector<Contestant> contestants_;
};

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_STORE_BENCH_H_
