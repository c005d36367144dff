#include "tests/fault/tcp_proxy/pipe.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace engram::fault {
namespace {

constexpr size_t kMaxChunks = 4096;
// A throttled direction sends in bursts of so much time at most, and waits
// until it may send so many bytes.
constexpr double kBurstSeconds = 0.02;
constexpr double kLeastBytes = 512;

double BurstBytes(uint64_t bytes_per_s) {
  return std::max(kLeastBytes,
                  kBurstSeconds * static_cast<double>(bytes_per_s));
}

}  // namespace

size_t Pipe::room() const {
  return chunks_.size() < kMaxChunks ? kMaxBytes - size_bytes_ : 0;
}

void Pipe::Add(std::string bytes, Steady::time_point now) {
  ENGRAM_CHECK(!bytes.empty() && bytes.size() <= room());
  size_bytes_ += bytes.size();
  chunks_.push_back({now, std::move(bytes)});
}

absl::string_view Pipe::Ready(const DirectionFaults& faults,
                              Steady::time_point now) {
  if (chunks_.empty() || chunks_.front().arrived + faults.delay > now) {
    return {};
  }
  const absl::string_view bytes =
      absl::string_view(chunks_.front().bytes).substr(first_offset_);
  if (faults.bytes_per_s == 0) return bytes;
  EarnBudget(faults.bytes_per_s, now);
  const double least = std::min(kLeastBytes, static_cast<double>(bytes.size()));
  if (budget_bytes_ < least) return {};
  return bytes.substr(0, static_cast<size_t>(budget_bytes_));
}

void Pipe::EarnBudget(uint64_t bytes_per_s, Steady::time_point now) {
  const std::chrono::duration<double> seconds = now - budget_at_;
  budget_at_ = now;
  budget_bytes_ = std::min(
      BurstBytes(bytes_per_s),
      budget_bytes_ + seconds.count() * static_cast<double>(bytes_per_s));
}

void Pipe::Remove(size_t size_bytes, const DirectionFaults& faults) {
  if (faults.bytes_per_s > 0) budget_bytes_ -= static_cast<double>(size_bytes);
  size_bytes_ -= size_bytes;
  first_offset_ += size_bytes;
  if (first_offset_ < chunks_.front().bytes.size()) return;
  chunks_.pop_front();
  first_offset_ = 0;
}

std::optional<Steady::time_point> Pipe::NextReady(
    const DirectionFaults& faults) const {
  if (chunks_.empty()) return std::nullopt;
  Steady::time_point ready = chunks_.front().arrived + faults.delay;
  if (faults.bytes_per_s > 0) {
    const double missing = std::max(0.0, kLeastBytes - budget_bytes_);
    ready = std::max(
        ready, budget_at_ +
                   std::chrono::duration_cast<Steady::duration>(
                       std::chrono::duration<double>(
                           missing / static_cast<double>(faults.bytes_per_s))));
  }
  return ready;
}

}  // namespace engram::fault
