#include "tests/bench/measure.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"

namespace engram::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Far above any gather of a contestant that works.
constexpr absl::Duration kGatherTimeout = absl::Seconds(20);
constexpr int kPoison = 0xA5;

double SecondsOf(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * time.tv_nsec;
}

double SecondsBetween(SteadyClock::time_point from,
                      SteadyClock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// The slots of one load: which batch each has, since when, and where it goes.
class Slots {
 public:
  Slots(GatherContestant& contestant, const BatchPool& pool,
        const LoadOptions& options, size_t row_bytes)
      : contestant_(contestant),
        pool_(pool),
        options_(options),
        out_bytes_(pool.rows_per_batch() * row_bytes),
        next_batch_(options.first_batch),
        slots_(options.in_flight) {}

  absl::Status Start(size_t slot) {
    slots_[slot] = {&pool_.batch(next_batch_++), SteadyClock::now()};
    return contestant_.Start(slot, *slots_[slot].batch, out(slot));
  }
  absl::StatusOr<size_t> WaitAny() {
    return contestant_.WaitAny(absl::Now() + kGatherTimeout);
  }
  const Batch& batch(size_t slot) const { return *slots_[slot].batch; }
  SteadyClock::time_point started(size_t slot) const {
    return slots_[slot].started;
  }
  absl::Span<std::byte> out(size_t slot) const {
    return options_.out.subspan(slot * out_bytes_, out_bytes_);
  }

 private:
  struct Slot {
    const Batch* batch = nullptr;
    SteadyClock::time_point started;
  };
  GatherContestant& contestant_;
  const BatchPool& pool_;
  const LoadOptions& options_;
  const size_t out_bytes_;
  size_t next_batch_;
  std::vector<Slot> slots_;
};

size_t RowBytes(const BatchPool& pool, const LoadOptions& options) {
  return options.out.size() / (options.in_flight * pool.rows_per_batch());
}

}  // namespace

absl::StatusOr<CpuMeter> CpuMeter::Create(absl::Span<const pid_t> processes) {
  CpuMeter meter;
  for (const pid_t process : processes) {
    clockid_t clock = 0;
    if (clock_getcpuclockid(process, &clock) != 0) {
      return absl::NotFoundError(absl::StrCat("no process ", process));
    }
    meter.clocks_.push_back(clock);
  }
  return meter;
}

double CpuMeter::OwnSeconds() { return SecondsOf(CLOCK_PROCESS_CPUTIME_ID); }

double CpuMeter::Seconds() const {
  double sum = 0;
  for (const clockid_t clock : clocks_) sum += SecondsOf(clock);
  return sum;
}

absl::StatusOr<RoundResult> RunLoad(GatherContestant& contestant,
                                    const BatchPool& pool,
                                    const CpuMeter& servers,
                                    const LoadOptions& options) {
  RoundResult result;
  result.latencies_us.reserve(1 << 16);
  Slots slots(contestant, pool, options, RowBytes(pool, options));
  const double client_before = CpuMeter::OwnSeconds();
  const double server_before = servers.Seconds();
  const SteadyClock::time_point begin = SteadyClock::now();
  const SteadyClock::time_point stop =
      begin + absl::ToChronoNanoseconds(options.duration);
  SteadyClock::time_point now = begin;
  size_t running = 0;
  for (; running < options.in_flight; ++running) {
    ENGRAM_RETURN_IF_ERROR(slots.Start(running));
  }
  while (running > 0) {
    ENGRAM_ASSIGN_OR_RETURN(const size_t slot, slots.WaitAny());
    now = SteadyClock::now();
    ++result.gathers;
    result.latencies_us.push_back(
        static_cast<float>(SecondsBetween(slots.started(slot), now) * 1e6));
    if (now < stop) {
      ENGRAM_RETURN_IF_ERROR(slots.Start(slot));
    } else {
      --running;
    }
  }
  result.seconds = SecondsBetween(begin, now);
  result.client_core_seconds = CpuMeter::OwnSeconds() - client_before;
  result.server_core_seconds = servers.Seconds() - server_before;
  result.rows = result.gathers * pool.rows_per_batch();
  std::sort(result.latencies_us.begin(), result.latencies_us.end());
  return result;
}

absl::StatusOr<uint64_t> VerifyRows(GatherContestant& contestant,
                                    const RowTable& table,
                                    const BatchPool& pool, uint64_t gathers,
                                    const LoadOptions& options) {
  Slots slots(contestant, pool, options, RowBytes(pool, options));
  std::memset(options.out.data(), kPoison, options.out.size());
  uint64_t started = 0;
  uint64_t rows = 0;
  for (; started < std::min<uint64_t>(options.in_flight, gathers); ++started) {
    ENGRAM_RETURN_IF_ERROR(slots.Start(started));
  }
  for (uint64_t ended = 0; ended < gathers; ++ended) {
    ENGRAM_ASSIGN_OR_RETURN(const size_t slot, slots.WaitAny());
    if (contestant.delivers_rows()) {
      ENGRAM_RETURN_IF_ERROR(
          table.Verify(slots.batch(slot).indices, slots.out(slot)));
      rows += pool.rows_per_batch();
    }
    if (started == gathers) continue;
    std::memset(slots.out(slot).data(), kPoison, slots.out(slot).size());
    ENGRAM_RETURN_IF_ERROR(slots.Start(slot));
    ++started;
  }
  return rows;
}

double Quantile(absl::Span<const float> sorted, double quantile) {
  if (sorted.empty()) return 0;
  const auto rank = static_cast<size_t>(
      std::ceil(quantile * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace engram::bench
