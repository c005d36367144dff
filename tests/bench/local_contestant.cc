#include "tests/bench/local_contestant.h"

#include <algorithm>
#include <thread>

namespace engram::bench {
namespace {

// The limit of the machine: a prefetched gather from this process's memory.
class InProcess final : public LocalContestant {
 public:
  ~InProcess() override { StopThreads(); }

  absl::Status Connect(const RowTable& table) override {
    table_ = &table;
    return absl::OkStatus();
  }

 protected:
  absl::Status Gather(const Batch& batch, absl::Span<std::byte> out) override {
    table_->Gather(batch.indices, out);
    return absl::OkStatus();
  }

 private:
  const RowTable* table_ = nullptr;
};

}  // namespace

absl::Status LocalContestant::Prepare(size_t max_in_flight) {
  StopThreads();
  ended_.Clear();
  if (max_in_flight == 1) return absl::OkStatus();
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  threads_ = std::make_unique<ThreadPool>(ThreadPool::Options{
      .thread_count = std::min(max_in_flight, cores),
      .max_queued = max_in_flight,
  });
  return absl::OkStatus();
}

absl::Status LocalContestant::Start(size_t slot, const Batch& batch,
                                    absl::Span<std::byte> out) {
  if (threads_ == nullptr) {
    ended_.Push(slot, Gather(batch, out));
    return absl::OkStatus();
  }
  const bool added = threads_->TryAdd(
      [this, slot, &batch, out] { ended_.Push(slot, Gather(batch, out)); });
  return added ? absl::OkStatus()
               : absl::ResourceExhaustedError("more gathers than slots");
}

absl::StatusOr<size_t> LocalContestant::WaitAny(absl::Time deadline) {
  return ended_.Pop(deadline);
}

std::unique_ptr<GatherContestant> MakeInProcess(const ContestantOptions&) {
  return std::make_unique<InProcess>();
}

}  // namespace engram::bench
