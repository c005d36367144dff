#include "engram_client/ctl/load_recorder.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/wire/error_detail.h"

namespace engram::ctl {
namespace {

constexpr char kOther[] = "OTHER";
constexpr size_t kMaxMessageBytes = 2000;

}  // namespace

LoadRecorder::LoadRecorder(size_t sizes, double start_seconds) {
  MutexLock lock(&mutex_);
  results_.sizes.resize(sizes);
  second_.from_seconds = start_seconds;
}

void LoadRecorder::Sent(Which which, absl::Duration delay) {
  MutexLock lock(&mutex_);
  ++second_.sent;
  if (!which.measured) {
    ++results_.warmup_calls;
    return;
  }
  ++results_.sizes[which.size_index].calls;
  results_.send_delay.Record(delay);
}

void LoadRecorder::NotSent(Which which, bool checks_are_behind) {
  MutexLock lock(&mutex_);
  ++second_.not_sent;
  if (!which.measured) {
    ++results_.warmup_not_sent;
    return;
  }
  ++results_.sizes[which.size_index].not_sent;
  if (checks_are_behind) ++results_.not_sent_for_checks;
}

void LoadRecorder::Ended(Which which, const Times& times,
                         const absl::Status& status, const LoadAnswer& answer) {
  Kind kind = KindOf(status);
  MutexLock lock(&mutex_);
  if (answer.mismatch.has_value() && !results_.mismatch.has_value()) {
    results_.mismatch = answer.mismatch;
  }
  results_.error.Update(answer.cannot_check);
  const bool right = status.ok() && !answer.mismatch.has_value();
  if (right) {
    ++second_.ok;
    second_latency_.Record(times.latency);
  }
  if (!status.ok()) ++second_.failed;
  if (!which.measured) {
    if (!status.ok()) ++results_.warmup_failed;
    return;
  }
  LoadCounts& counts = results_.sizes[which.size_index];
  counts.units_checked += answer.units_checked;
  counts.server_calls += answer.server_calls;
  counts.wire_bytes += answer.wire_bytes;
  results_.deadline_overrun =
      std::max(results_.deadline_overrun, times.overrun);
  if (!status.ok()) {
    ++counts.failed;
    LoadFailure& failure = FailureOf(std::move(kind), status);
    ++failure.count;
    failure.latency.Record(times.latency);
    return;
  }
  if (!right) {
    ++counts.wrong;
    return;
  }
  ++counts.ok;
  counts.units += answer.units;
  counts.bytes += answer.bytes;
  counts.latency.Record(times.latency);
}

bool LoadRecorder::in_second() const {
  MutexLock lock(&mutex_);
  return second_.sent + second_.ok + second_.failed + second_.not_sent > 0;
}

LoadSecond LoadRecorder::Cut(double now, uint64_t in_flight) {
  MutexLock lock(&mutex_);
  second_.seconds = now - second_.from_seconds;
  second_.in_flight = in_flight;
  second_.p50 = second_latency_.Quantile(0.5);
  second_.p99 = second_latency_.Quantile(0.99);
  second_.max = second_latency_.max();
  results_.seconds.push_back(second_);
  second_ = {.from_seconds = now};
  second_latency_.Clear();
  return results_.seconds.back();
}

LoadResults LoadRecorder::results() const {
  MutexLock lock(&mutex_);
  return results_;
}

LoadRecorder::Kind LoadRecorder::KindOf(const absl::Status& status) {
  if (status.ok()) return {};
  return {absl::StatusCodeToString(status.code()),
          std::string(ReasonName(ReasonOf(status)))};
}

LoadFailure& LoadRecorder::FailureOf(Kind kind, const absl::Status& status) {
  std::vector<LoadFailure>& failures = results_.failures;
  const auto is_such = [&kind](const LoadFailure& failure) {
    return failure.code == kind.code && failure.reason == kind.reason;
  };
  auto found = std::find_if(failures.begin(), failures.end(), is_such);
  if (found == failures.end() && failures.size() >= kMaxFailures) {
    kind = {.code = kOther};
    found = std::find_if(failures.begin(), failures.end(), is_such);
  }
  if (found != failures.end()) return *found;
  LoadFailure failure;
  failure.code = std::move(kind.code);
  failure.reason = std::move(kind.reason);
  failure.first_message =
      std::string(status.message().substr(0, kMaxMessageBytes));
  failures.push_back(std::move(failure));
  return failures.back();
}

}  // namespace engram::ctl
