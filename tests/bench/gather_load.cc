#include "tests/bench/gather_load.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "engram_client/ctl/load_ids.h"

namespace engram::bench {
namespace {

double CoreSeconds() {
  rusage usage;
  ENGRAM_CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The threads of one turn.
class Asking {
 public:
  Asking(RowReader& reader, const SyntheticTable& table, const GatherLoad& load)
      : reader_(reader),
        table_(table),
        load_(load),
        draw_(table.row_count(), load.zipf),
        end_(load.gathers > 0 ? absl::InfiniteFuture()
                              : absl::Now() + absl::Seconds(load.seconds)),
        latencies_us_(load.in_flight),
        statuses_(load.in_flight) {}

  absl::StatusOr<GatherTurn> Run() {
    const double core_before = CoreSeconds();
    const absl::Time begin = absl::Now();
    std::vector<std::thread> threads;
    for (size_t i = 0; i < load_.in_flight; ++i) {
      threads.emplace_back([this, i] { statuses_[i] = Ask(latencies_us_[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const absl::Status& status : statuses_) ENGRAM_RETURN_IF_ERROR(status);
    GatherTurn turn;
    turn.seconds = absl::ToDoubleSeconds(absl::Now() - begin);
    for (const std::vector<double>& part : latencies_us_) {
      turn.latencies_us.insert(turn.latencies_us.end(), part.begin(),
                               part.end());
    }
    const double rows =
        static_cast<double>(turn.latencies_us.size() * load_.rows);
    turn.rows_per_s = rows / turn.seconds;
    turn.core_us_per_row = (CoreSeconds() - core_before) * 1e6 / rows;
    return turn;
  }

 private:
  absl::Status Ask(std::vector<double>& latencies_us) {
    std::vector<RowId> row_ids(load_.rows);
    std::vector<std::byte> out(load_.rows * table_.row_bytes());
    while (absl::Now() < end_) {
      const uint64_t number = next_.fetch_add(1);
      if (load_.gathers > 0 && number >= load_.gathers) break;
      // Which thread asks it does not change the ids.
      ctl::LoadRandom random(ctl::LoadRandom(load_.seed << 32 | number).Next());
      draw_.Fill(random, absl::MakeSpan(row_ids));
      const absl::Time begin = absl::Now();
      ENGRAM_RETURN_IF_ERROR(reader_.Gather(row_ids, absl::MakeSpan(out)));
      latencies_us.push_back(absl::ToDoubleMicroseconds(absl::Now() - begin));
      ENGRAM_RETURN_IF_ERROR(table_.Check(row_ids, out, load_.check_every));
    }
    return absl::OkStatus();
  }

  RowReader& reader_;
  const SyntheticTable& table_;
  const GatherLoad& load_;
  const ctl::RowIdDraw draw_;
  const absl::Time end_;
  std::atomic<uint64_t> next_{0};
  std::vector<std::vector<double>> latencies_us_;  // by thread
  std::vector<absl::Status> statuses_;
};

}  // namespace

absl::StatusOr<GatherTurn> RunGathers(RowReader& reader,
                                      const SyntheticTable& table,
                                      const GatherLoad& load) {
  return Asking(reader, table, load).Run();
}

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q *
                                    static_cast<double>(values.size() - 1))];
}

}  // namespace engram::bench
