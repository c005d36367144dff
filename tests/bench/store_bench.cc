#include "tests/bench/store_bench.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "table_server/store/aligned_buffer.h"
#include "table_server/store/flat_store.h"
#include "table_server/store/rocks_store.h"

namespace engram::bench {
namespace {

constexpr double kBytesPerMb = 1e6;
constexpr size_t kDirectReadBytes = size_t{4} << 20;  // of dd
constexpr size_t kLoaders = 4;      // partitions that are put or read at once
constexpr size_t kCheckEvery = 16;  // rows of a gather
constexpr uint32_t kRowsPerValue[] = {1, 15, 60};

// Gathers of so many rows, so many at once.
struct Cell {
  size_t rows;
  size_t in_flight;
};
constexpr Cell kCells[] = {{24, 1}, {24, 16}, {1536, 1}, {1536, 4}};

class StoreReader final : public RowReader {
 public:
  explicit StoreReader(LocalStore& store) : store_(store) {}

  absl::Status Gather(absl::Span<const RowId> row_ids,
                      absl::Span<std::byte> out) override {
    std::vector<uint32_t> wanted(row_ids.size());
    for (uint32_t i = 0; i < wanted.size(); ++i) wanted[i] = i;
    return WaitForRows([&](LocalStore::OnRows done) {
      store_.Fetch({.layer_index = 0,
                    .row_ids = row_ids,
                    .wanted = std::move(wanted),
                    .out = out},
                   std::move(done));
    });
  }

 private:
  LocalStore& store_;
};

double MbPerS(uint64_t bytes, absl::Duration took) {
  return static_cast<double>(bytes) / kBytesPerMb / absl::ToDoubleSeconds(took);
}

// Of the whole machine, where we may.
void DropCaches() {
  sync();
  if (FILE* drop = std::fopen("/proc/sys/vm/drop_caches", "w")) {
    std::fputs("3", drop);
    std::fclose(drop);
  }
}

}  // namespace

StoreBench::Contestant& StoreBench::Add(std::string name) {
  Contestant& added = contestants_.emplace_back();
  added.name = std::move(name);
  added.turns.resize(std::size(kCells));
  return added;
}

absl::Status StoreBench::AddFlat() {
  ENGRAM_ASSIGN_OR_RETURN(
      Add("flat").store,
      FlatStore::Open(table_.manifest(),
                      {.dir = options_.dir + "/flat",
                       .reads = {.thread_count = options_.threads}}));
  return absl::OkStatus();
}

absl::Status StoreBench::AddRocks(const std::string& name, uint32_t rows) {
  ENGRAM_ASSIGN_OR_RETURN(
      Add(name).store,
      RocksStore::Open(table_.manifest(),
                       {.dir = absl::StrCat(options_.dir, "/", name),
                        .reads = {.thread_count = options_.threads},
                        .rows_per_block = rows}));
  return absl::OkStatus();
}

absl::Status StoreBench::Prepare() {
  ENGRAM_RETURN_IF_ERROR(AddFlat());
  for (const uint32_t rows : kRowsPerValue) {
    const std::string name = absl::StrCat("rocksdb_", rows);
    if (options_.only.empty() || absl::c_linear_search(options_.only, name)) {
      ENGRAM_RETURN_IF_ERROR(AddRocks(name, rows));
    }
  }
  for (Contestant& contestant : contestants_) {
    ENGRAM_RETURN_IF_ERROR(PutAll(contestant));
  }
  DropCaches();
  return absl::OkStatus();
}

// The time in which rows are made up does not count.
absl::Status StoreBench::PutAll(Contestant& contestant) const {
  std::fprintf(stderr, "store: putting %u partitions into %s\n",
               table_.partitions(), contestant.name.c_str());
  std::atomic<int64_t> put_ns{0};
  ENGRAM_RETURN_IF_ERROR(table_.ForPartitions(kLoaders, [&](uint32_t p) {
    thread_local std::vector<std::byte> packed(table_.partition_bytes());
    table_.Fill(p, absl::MakeSpan(packed));
    const absl::Time begin = absl::Now();
    absl::Status status = contestant.store->Put(table_.Ref(p), packed);
    put_ns += absl::ToInt64Nanoseconds(absl::Now() - begin);
    return status;
  }));
  contestant.put_mb_per_s =
      MbPerS(table_.bytes(), absl::Nanoseconds(put_ns.load()) / kLoaders);
  return absl::OkStatus();
}

absl::StatusOr<double> StoreBench::ReadAll(LocalStore& store,
                                           size_t at_once) const {
  const absl::Time begin = absl::Now();
  ENGRAM_RETURN_IF_ERROR(
      table_.ForPartitions(at_once, [&](uint32_t p) -> absl::Status {
        thread_local std::vector<std::byte> out(table_.partition_bytes());
        ENGRAM_RETURN_IF_ERROR(
            store.Read(table_.Ref(p), absl::MakeSpan(out),
                       [](size_t) { return absl::OkStatus(); }));
        const RowId first = static_cast<RowId>(p * table_.rows_per_partition());
        return table_.Check({&first, 1}, out, 1);
      }));
  return MbPerS(table_.bytes(), absl::Now() - begin);
}

absl::Status StoreBench::Measure() {
  for (size_t round = 0; round < options_.rounds; ++round) {
    ENGRAM_RETURN_IF_ERROR(MeasureRound(round));
  }
  return absl::OkStatus();
}

absl::Status StoreBench::MeasureRound(size_t round) {
  const size_t count = contestants_.size();
  for (size_t i = 0; i < count; ++i) {
    Contestant& next = contestants_[(i + round) % count];
    ENGRAM_ASSIGN_OR_RETURN(const double one, ReadAll(*next.store, 1));
    ENGRAM_ASSIGN_OR_RETURN(const double some, ReadAll(*next.store, kLoaders));
    next.one_read_mb_per_s.push_back(one);
    next.read_mb_per_s.push_back(some);
  }
  ENGRAM_RETURN_IF_ERROR(ReadAsDd());
  for (size_t cell = 0; cell < std::size(kCells); ++cell) {
    for (size_t i = 0; i < count; ++i) {
      Contestant& next = contestants_[(i + round) % count];
      StoreReader reader(*next.store);
      ENGRAM_ASSIGN_OR_RETURN(
          GatherTurn turn, RunGathers(reader, table_,
                                      {.rows = kCells[cell].rows,
                                       .in_flight = kCells[cell].in_flight,
                                       .seed = round * std::size(kCells) + cell,
                                       .seconds = options_.seconds,
                                       .check_every = kCheckEvery}));
      next.turns[cell].push_back(std::move(turn));
    }
  }
  return absl::OkStatus();
}

// The flat files with direct reads one after another, nothing looked at.
absl::Status StoreBench::ReadAsDd() {
  AlignedBuffer buffer(kDirectReadBytes);
  uint64_t bytes = 0;
  const absl::Time begin = absl::Now();
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(options_.dir + "/flat")) {
    if (entry.path().extension() != ".rows") continue;
    const int fd = open(entry.path().c_str(), O_RDONLY | O_DIRECT);
    if (fd < 0) return absl::UnavailableError("no direct reads here");
    ssize_t got = 0;
    while ((got = read(fd, buffer.bytes().data(), kDirectReadBytes)) > 0) {
      bytes += static_cast<uint64_t>(got);
    }
    close(fd);
  }
  dd_mb_per_s_.push_back(MbPerS(bytes, absl::Now() - begin));
  return absl::OkStatus();
}

nlohmann::json StoreBench::Result() const {
  nlohmann::json contestants = nlohmann::json::array();
  for (const Contestant& contestant : contestants_) {
    contestants.push_back(ResultOf(contestant));
  }
  return {{"table_bytes", table_.bytes()},
          {"row_bytes", table_.row_bytes()},
          {"threads", options_.threads},
          {"dd_mb_per_s", Quantile(dd_mb_per_s_, 0.5)},
          {"contestants", std::move(contestants)}};
}

nlohmann::json StoreBench::ResultOf(const Contestant& contestant) const {
  nlohmann::json cells = nlohmann::json::array();
  for (size_t cell = 0; cell < std::size(kCells); ++cell) {
    cells.push_back(ResultOf(contestant, cell));
  }
  return {{"name", contestant.name},
          {"put_mb_per_s", contestant.put_mb_per_s},
          {"read_mb_per_s", Quantile(contestant.read_mb_per_s, 0.5)},
          {"one_read_mb_per_s", Quantile(contestant.one_read_mb_per_s, 0.5)},
          {"disk_bytes", contestant.store->disk_bytes()},
          {"cells", std::move(cells)}};
}

nlohmann::json StoreBench::ResultOf(const Contestant& contestant,
                                    size_t cell) const {
  std::vector<double> rates, latencies, cores, rate_ratios, core_ratios;
  for (size_t round = 0; round < options_.rounds; ++round) {
    const GatherTurn& turn = contestant.turns[cell][round];
    const GatherTurn& flat = contestants_[0].turns[cell][round];
    rates.push_back(turn.rows_per_s);
    cores.push_back(turn.core_us_per_row);
    latencies.insert(latencies.end(), turn.latencies_us.begin(),
                     turn.latencies_us.end());
    rate_ratios.push_back(flat.rows_per_s / turn.rows_per_s);
    core_ratios.push_back(turn.core_us_per_row / flat.core_us_per_row);
  }
  return {{"rows", kCells[cell].rows},
          {"in_flight", kCells[cell].in_flight},
          {"rows_per_s", Quantile(rates, 0.5)},
          {"p50_us", Quantile(latencies, 0.5)},
          {"p99_us", Quantile(latencies, 0.99)},
          {"core_us_per_row", Quantile(cores, 0.5)},
          {"flat_vs_this", Quantile(rate_ratios, 0.5)},
          {"core_vs_flat", Quantile(core_ratios, 0.5)}};
}

}  // namespace engram::bench
