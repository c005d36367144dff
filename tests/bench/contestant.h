#ifndef ENGRAM_TESTS_BENCH_CONTESTANT_H_
#define ENGRAM_TESTS_BENCH_CONTESTANT_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "tests/bench/batches.h"
#include "tests/bench/row_table.h"

namespace engram::bench {

// One way to fetch rows by id, as the driver sees all of them. Gathers run in
// slots, each with one gather at a time.
//
// Thread safety: none; one thread drives a contestant.
class GatherContestant {
 public:
  // Waits until nothing writes to the caller's buffers any more.
  virtual ~GatherContestant() = default;

  // Connects and, where the peer does not read the checkpoint itself, brings
  // it the rows. Once, first. `table` outlives the contestant.
  virtual absl::Status Connect(const RowTable& table) = 0;

  // Gets ready for at most `max_in_flight` gathers at a time, in slots
  // [0, max_in_flight). Gathers left over from before are dropped, and nothing
  // of them writes any more: this also mends a contestant after an error.
  virtual absl::Status Prepare(size_t max_in_flight) = 0;

  // Lets go of threads and connections until the next Prepare: gRPC has one
  // poller in a process, and those of others would take part in every turn.
  virtual void Rest() {}

  // Starts to fetch row i of `batch` into slot i of `out`. Both stay until the
  // gather has ended. REQUIRES: nothing is in flight in `slot`.
  virtual absl::Status Start(size_t slot, const Batch& batch,
                             absl::Span<std::byte> out) = 0;

  // Waits for any gather to end; its slot. REQUIRES: one is in flight.
  virtual absl::StatusOr<size_t> WaitAny(absl::Time deadline) = 0;

  // False: measures a part of the way only, `out` is left as it is.
  virtual bool delivers_rows() const { return true; }
};

// What a contestant is made of, as the run's specification names it.
struct ContestantOptions {
  std::string kind;
  std::vector<std::string> addresses;
  std::string scratch_dir;  // for what a contestant stores; removed later
};

// INVALID_ARGUMENT: no such kind, or not as many addresses as it needs.
absl::StatusOr<std::unique_ptr<GatherContestant>> MakeContestant(
    const ContestantOptions& options);

// The kinds. REQUIRES (MakeContestant checks): the addresses each needs.
std::unique_ptr<GatherContestant> MakeT1(const ContestantOptions& options);
std::unique_ptr<GatherContestant> MakeT2(const ContestantOptions& options);
std::unique_ptr<GatherContestant> MakeTcpBytes(
    const ContestantOptions& options);
std::unique_ptr<GatherContestant> MakeRedis(const ContestantOptions& options);
std::unique_ptr<GatherContestant> MakeMemcached(
    const ContestantOptions& options);
std::unique_ptr<GatherContestant> MakeRocksDb(const ContestantOptions& options);
std::unique_ptr<GatherContestant> MakeInProcess(
    const ContestantOptions& options);
std::unique_ptr<GatherContestant> MakeEasyGrpc(
    const ContestantOptions& options);
std::unique_ptr<GatherContestant> MakeEngram(const ContestantOptions& options);
std::unique_ptr<GatherContestant> MakeEmptyStream(
    const ContestantOptions& options);
std::unique_ptr<GatherContestant> MakeEmptyUnary(
    const ContestantOptions& options);

// Gathers that have ended, from the threads that saw it to the driver's.
//
// Thread safety: all methods may be called concurrently.
class EndedGathers {
 public:
  void Push(size_t slot, absl::Status status) {
    MutexLock lock(&mutex_);
    ended_.emplace_back(slot, std::move(status));
    changed_.NotifyOne();
  }

  // The slot of the next that ended, or its error. DEADLINE_EXCEEDED.
  absl::StatusOr<size_t> Pop(absl::Time deadline) {
    MutexLock lock(&mutex_);
    while (ended_.empty()) {
      if (!changed_.WaitUntil(&mutex_, deadline) && ended_.empty()) {
        return absl::DeadlineExceededError("no gather ended in time");
      }
    }
    std::pair<size_t, absl::Status> next = std::move(ended_.front());
    ended_.pop_front();
    if (!next.second.ok()) return next.second;
    return next.first;
  }

  void Clear() {
    MutexLock lock(&mutex_);
    ended_.clear();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::pair<size_t, absl::Status>> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_CONTESTANT_H_
