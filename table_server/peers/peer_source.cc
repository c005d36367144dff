#include "table_server/peers/peer_source.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/wire/error_detail.h"

namespace engram {
namespace {

constexpr absl::Duration kStopPoll = absl::Milliseconds(50);
// Between two rounds of the holders.
constexpr absl::Duration kShortestPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(2);

}  // namespace

// How far the copy of one partition is.
class PeerSource::Copy {
 public:
  Copy(const PartitionRef& ref, absl::Span<std::byte> out,
       absl::FunctionRef<absl::Status(size_t)> on_bytes)
      : ref_(ref), out_(out), on_bytes_(on_bytes) {}

  const PartitionRef& ref() const { return ref_; }
  size_t size() const { return out_.size(); }
  size_t filled() const { return filled_; }
  // The taker's error: nobody else is to be asked.
  const absl::Status& refused() const { return refused_; }

  // The next rows are those from `offset_bytes` on.
  void GoOnFrom(size_t offset_bytes) { filled_ = offset_bytes; }

  absl::Status Take(absl::Span<const std::byte> rows) {
    if (rows.size() > out_.size() - filled_) {
      return absl::DataLossError(
          absl::StrCat("it sent more than the ", out_.size(), " bytes it has"));
    }
    std::memcpy(out_.data() + filled_, rows.data(), rows.size());
    filled_ += rows.size();
    if (filled_ <= told_) return absl::OkStatus();
    const size_t more = filled_ - told_;
    told_ = filled_;
    refused_ = on_bytes_(more);
    return refused_;
  }

 private:
  const PartitionRef ref_;
  const absl::Span<std::byte> out_;
  const absl::FunctionRef<absl::Status(size_t)> on_bytes_;
  size_t filled_ = 0;
  size_t told_ = 0;  // of the bytes: never one twice
  absl::Status refused_;
};

struct PeerSource::Round {
  absl::Status status;  // OK: the copy is complete
  // The least that an OVERLOADED holder wants to be left alone.
  std::optional<absl::Duration> busy;
};

PeerSource::PeerSource(PeerCalls& calls, Holders holders, Options options)
    : options_(std::move(options)),
      calls_(calls),
      holders_(std::move(holders)) {}

absl::Status PeerSource::Read(
    const PartitionRef& ref, absl::Span<std::byte> out,
    absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) {
  const uint64_t turn = reads_.fetch_add(1, std::memory_order_relaxed);
  const absl::Time deadline = absl::Now() + options_.read_timeout;
  absl::Time moved = absl::Now();
  Copy copy(ref, out, on_bytes);
  while (true) {
    const size_t before = copy.filled();
    const Round round = AskAll(copy, turn, deadline);
    if (round.status.ok()) return absl::OkStatus();
    if (!copy.refused().ok()) return copy.refused();
    if (stopped()) return absl::CancelledError("the read was stopped");
    const bool progress = copy.filled() > before;
    const absl::Time now = absl::Now();
    if (progress) moved = now;
    const bool patient = progress || (round.busy.has_value() &&
                                      now - moved < options_.busy_timeout);
    if (!patient || now >= deadline) return round.status;
    Pause(round.busy.value_or(kShortestPause));
  }
}

PeerSource::Round PeerSource::AskAll(Copy& copy, uint64_t turn,
                                     absl::Time deadline) {
  Round round{absl::NotFoundError("no other server holds it"), std::nullopt};
  for (const PartitionHolder& holder : HoldersInOrder(copy.ref(), turn)) {
    if (stopped()) break;
    const absl::Status status = AskOne(copy, holder, deadline);
    if (status.ok() || !copy.refused().ok()) {
      round.status = status;
      break;
    }
    if (ReasonOf(status) == ErrorReason::kOverloaded) {
      const absl::Duration wanted =
          RetryAfterOf(status).value_or(kShortestPause);
      round.busy = std::min(wanted, round.busy.value_or(wanted));
    }
    // Of several errors, that there are bytes and wrong ones says the most.
    if (absl::IsDataLoss(round.status)) continue;
    const std::string text = absl::StrCat(
        "server ", holder.name, ": ", absl::StatusCodeToString(status.code()),
        ": ", status.message());
    round.status = absl::IsDataLoss(status) ? absl::DataLossError(text)
                                            : absl::UnavailableError(text);
  }
  return round;
}

absl::Status PeerSource::AskOne(Copy& copy, const PartitionHolder& holder,
                                absl::Time deadline) {
  copy.GoOnFrom(copy.filled() - copy.filled() % options_.row_bytes);
  absl::Status status = calls_.FetchPartition(
      holder.address,
      {.version = options_.version,
       .ref = copy.ref(),
       .offset_bytes = copy.filled(),
       .deadline = deadline,
       .stall_timeout = options_.stall_timeout,
       .stop = options_.stop},
      [&](absl::Span<const std::byte> rows) { return copy.Take(rows); });
  if (status.ok() && copy.filled() < copy.size()) {
    status = absl::DataLossError(
        absl::StrCat("it sent ", copy.filled(), " of ", copy.size(), " bytes"));
  }
  // What it sent before is worth as little.
  if (absl::IsDataLoss(status)) copy.GoOnFrom(0);
  return status;
}

std::vector<PartitionHolder> PeerSource::HoldersInOrder(const PartitionRef& ref,
                                                        uint64_t turn) const {
  const uint64_t key[] = {ToInt(ref.layer), ToInt(ref.partition), turn};
  const uint64_t seed = XXH3_64bits_withSeed(key, sizeof(key), options_.seed);
  std::vector<std::pair<uint64_t, PartitionHolder>> ranked;
  for (PartitionHolder& holder : holders_(ref)) {
    const uint64_t rank =
        XXH3_64bits_withSeed(holder.name.data(), holder.name.size(), seed);
    ranked.emplace_back(rank, std::move(holder));
  }
  std::sort(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<PartitionHolder> holders;
  holders.reserve(ranked.size());
  for (auto& [rank, holder] : ranked) holders.push_back(std::move(holder));
  return holders;
}

void PeerSource::Pause(absl::Duration pause) const {
  const absl::Time until =
      absl::Now() + std::clamp(pause, kShortestPause, kLongestPause);
  for (absl::Duration left = until - absl::Now();
       left > absl::ZeroDuration() && !stopped(); left = until - absl::Now()) {
    absl::SleepFor(std::min(left, kStopPoll));
  }
}

}  // namespace engram
