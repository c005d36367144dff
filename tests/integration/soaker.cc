#include "tests/integration/soaker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace engram {
namespace {

constexpr std::byte kUnwritten{0xEE};
constexpr std::byte kSettled{0x55};
constexpr size_t kGuardBytes = 64;
constexpr absl::Duration kLongEnough = absl::Minutes(1);

bool AllSettled(absl::Span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte byte) { return byte == kSettled; });
}

}  // namespace

void SoakProgress::Add(const SoakCounts& more) {
  MutexLock lock(&mutex_);
  counts_.rows_checked += more.rows_checked;
  counts_.gathers += more.gathers;
  counts_.whole += more.whole;
  counts_.cancelled += more.cancelled;
  counts_.destroyed += more.destroyed;
  counts_.out_of_time += more.out_of_time;
  changed_.NotifyAll();
}

void SoakProgress::Expect(bool holds, absl::string_view otherwise) {
  if (holds) return;
  ADD_FAILURE() << otherwise;
  MutexLock lock(&mutex_);
  failed_ = true;
  changed_.NotifyAll();
}

void SoakProgress::WaitForRows(uint64_t rows) {
  MutexLock lock(&mutex_);
  while (counts_.rows_checked < rows && !failed_) {
    if (!changed_.WaitUntil(&mutex_, until_)) return;
  }
}

bool SoakProgress::done() const {
  MutexLock lock(&mutex_);
  return counts_.rows_checked >= rows_to_check_ || failed_ ||
         absl::Now() >= until_;
}

SoakCounts SoakProgress::counts() const {
  MutexLock lock(&mutex_);
  return counts_;
}

Soaker::Soaker(const TableInfo& table, const StoredRows& stored,
               SoakProgress& progress)
    : table_(table),
      stored_(stored),
      progress_(progress),
      ids_(table.layers.size()) {
  memory_.reserve(2 * kGuardBytes + kMaxRows * row_bytes());
}

void Soaker::Start(TableClient& client, std::mt19937_64& random) {
  ExpectSettled();
  DrawRows(random);
  way_ = static_cast<Way>(random() % static_cast<int>(Way::kCount));
  told_.reset();
  status_.reset();
  absl::AnyInvocable<void(const absl::Status&)> done;
  if (way_ == Way::kCallback || way_ == Way::kDestroy || random() % 2 == 0) {
    told_ = std::make_unique<Notification>();
    done = [this](const absl::Status& status) {
      progress_.Expect(!status_.has_value(), "an end was told twice");
      status_ = status;
      told_->Notify();
    };
  }
  const absl::Duration time = way_ == Way::kLittleTime
                                  ? absl::Microseconds(random() % 3000)
                                  : kLongEnough;
  handle_ = client.Prefetch(Layers(), absl::Now() + time, std::move(done));
}

void Soaker::End(std::mt19937_64& random) {
  const absl::Status status = WaitForEnd(random);
  const SoakCounts counts = CheckEnd(status);
  std::fill(memory_.begin(), memory_.end(), kSettled);
  handle_.reset();
  if (told_ != nullptr) {
    progress_.Expect(told_->HasBeenNotified(), "an end was not told");
    progress_.Expect(status_ == status, "the callback and Wait differ");
  }
  progress_.Add(counts);
}

SoakCounts Soaker::CheckEnd(const absl::Status& status) const {
  SoakCounts counts = {.gathers = 1};
  if (status.ok()) {
    counts.whole = 1;
    counts.rows_checked = CheckRows();
  } else if (absl::IsCancelled(status) && way_ == Way::kCancel) {
    counts.cancelled = 1;
  } else if (absl::IsCancelled(status) && way_ == Way::kDestroy) {
    counts.destroyed = 1;
  } else {
    counts.out_of_time = 1;
    progress_.Expect(
        absl::IsDeadlineExceeded(status) && way_ == Way::kLittleTime,
        status.ToString());
  }
  return counts;
}

void Soaker::ExpectSettled() const {
  progress_.Expect(AllSettled(memory_),
                   "a buffer was written after the end of its gather");
}

// Rows of some layers, of one or other layer none; ids of a span that may be
// one row, a few partitions or the whole layer.
void Soaker::DrawRows(std::mt19937_64& random) {
  constexpr uint64_t kSizes[] = {1, 40, 1000, kMaxRows};
  constexpr uint64_t kSpans[] = {1, 60, 5000, ~uint64_t{0}};
  order_.resize(table_.layers.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::shuffle(order_.begin(), order_.end(), random);
  order_.resize(1 + random() % order_.size());
  const uint64_t total = 1 + random() % kSizes[random() % std::size(kSizes)];
  uint64_t left = total;
  for (const size_t layer : order_) {
    const uint64_t row_count = table_.layers[layer].row_count;
    const uint64_t span =
        std::min(row_count, kSpans[random() % std::size(kSpans)]);
    const uint64_t first = random() % (row_count - span + 1);
    const bool last = layer == order_.back();
    const uint64_t some = random() % 3 == 0 ? 0 : random() % (left + 1);
    ids_[layer].resize(last ? left : some);
    left -= ids_[layer].size();
    for (RowId& id : ids_[layer]) {
      id = static_cast<RowId>(first + random() % span);
    }
  }
  memory_.assign(2 * kGuardBytes + total * row_bytes(), kSettled);
  std::fill(memory_.begin() + kGuardBytes, memory_.end() - kGuardBytes,
            kUnwritten);
}

// Their buffers lie side by side.
std::vector<LayerGather> Soaker::Layers() {
  std::vector<LayerGather> layers;
  size_t at = kGuardBytes;
  for (const size_t layer : order_) {
    const size_t bytes = ids_[layer].size() * row_bytes();
    layers.push_back({table_.layers[layer].layer_id, ids_[layer],
                      absl::MakeSpan(memory_).subspan(at, bytes)});
    at += bytes;
  }
  return layers;
}

absl::Status Soaker::WaitForEnd(std::mt19937_64& random) {
  switch (way_) {
    case Way::kCancel:
      Dawdle(random);
      handle_->Cancel();
      return handle_->Wait();
    case Way::kDestroy:
      Dawdle(random);
      handle_.reset();
      return status_.value_or(absl::InternalError("no end was told"));
    case Way::kCallback:
      // The gather's deadline comes first.
      if (!told_->WaitUntil(absl::Now() + 2 * kLongEnough)) {
        return absl::InternalError("no end was told");
      }
      return *status_;
    default:
      return handle_->Wait();
  }
}

// Not at all, for a moment, or until most gathers have ended.
void Soaker::Dawdle(std::mt19937_64& random) const {
  constexpr uint64_t kTurns[] = {1, 10, 300};
  uint64_t turns = random() % kTurns[random() % std::size(kTurns)];
  for (; turns > 0 && !handle_->done(); --turns) std::this_thread::yield();
}

uint64_t Soaker::CheckRows() const {
  const absl::Span<const std::byte> memory(memory_);
  progress_.Expect(AllSettled(memory.first(kGuardBytes)),
                   "written before the buffers");
  progress_.Expect(AllSettled(memory.last(kGuardBytes)),
                   "written behind the buffers");
  uint64_t rows = 0;
  const std::byte* row = memory_.data() + kGuardBytes;
  for (const size_t layer : order_) {
    const std::byte* const stored = stored_[layer].data();
    for (const RowId id : ids_[layer]) {
      if (std::memcmp(row, stored + id * row_bytes(), row_bytes()) != 0) {
        progress_.Expect(
            false, absl::StrCat("row ", rows, " of a gather is ", "not row ",
                                id, " of layer index ", layer));
        return rows;
      }
      ++rows;
      row += row_bytes();
    }
  }
  return rows;
}

}  // namespace engram
