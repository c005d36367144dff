#ifndef ENGRAM_TABLE_SERVER_TIER_FAKE_ROW_TIER_H_
#define ENGRAM_TABLE_SERVER_TIER_FAKE_ROW_TIER_H_

#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "table_server/tier/row_tier.h"

namespace engram {

// A tier for tests: another's rows, some of which have to be fetched. A fetch
// is held until the test ends it, or, once the tier is open, is ended by a
// thread.
class FakeRowTier final : public RowTier {
 public:
  using IsCold = std::function<bool(size_t layer_index, RowId row)>;

  // `tier`, which misses nothing, must outlive it.
  FakeRowTier(const RowTier& tier, IsCold is_cold)
      : tier_(tier),
        is_cold_(std::move(is_cold)),
        thread_([this] { Work(); }) {}
  ~FakeRowTier() override {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
    MutexLock lock(&mutex_);
    for (const Asked& asked : asked_) ENGRAM_CHECK(asked.ended);
  }

  // From now on fetches end by themselves, also those that are held.
  void Open() {
    MutexLock lock(&mutex_);
    open_ = true;
    changed_.NotifyAll();
  }
  // Whether so many fetches have been asked for, since the beginning, within a
  // time that is generous.
  bool WaitForFetches(size_t count) const {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    MutexLock lock(&mutex_);
    while (asked_.size() < count) {
      if (!changed_.WaitUntil(&mutex_, deadline)) return false;
    }
    return true;
  }
  size_t fetches() const {
    MutexLock lock(&mutex_);
    return asked_.size();
  }
  // The index-th that was asked for. REQUIRES: not ended.
  RowFetch fetch(size_t index) const {
    MutexLock lock(&mutex_);
    return asked_.at(index).fetch;
  }
  // Ends it, on this thread. OK: with its rows. REQUIRES: not open.
  void End(size_t index, const absl::Status& status = absl::OkStatus()) {
    std::optional<Asked> asked = Take(index);
    ENGRAM_CHECK(asked.has_value());
    Tell(*std::move(asked), status);
  }

  absl::Status CopyRows(size_t layer_index, absl::Span<const RowId> row_ids,
                        absl::Span<std::byte> out,
                        std::vector<uint32_t>& misses) const override {
    for (size_t i = 0; i < row_ids.size(); ++i) {
      if (is_cold_(layer_index, row_ids[i])) {
        misses.push_back(static_cast<uint32_t>(i));
      } else {
        CopyRow(layer_index, row_ids, out, i);
      }
    }
    return absl::OkStatus();
  }
  absl::Status ScanRows(size_t layer_index, absl::Span<const RowId> row_ids,
                        absl::Span<std::byte> out,
                        std::vector<uint32_t>& misses) const override {
    scans_.fetch_add(1);
    return CopyRows(layer_index, row_ids, out, misses);
  }
  size_t scans() const { return scans_.load(); }  // ScanRows
  void Fetch(RowFetch fetch, OnRows done) const override {
    MutexLock lock(&mutex_);
    asked_.push_back({std::move(fetch), std::move(done)});
    changed_.NotifyAll();
  }
  size_t row_bytes() const override { return tier_.row_bytes(); }
  size_t memory_bytes() const override { return tier_.memory_bytes(); }
  size_t huge_page_bytes() const override { return tier_.huge_page_bytes(); }

 private:
  struct Asked {
    RowFetch fetch;
    OnRows done;
    bool ended = false;
  };

  void CopyRow(size_t layer_index, absl::Span<const RowId> row_ids,
               absl::Span<std::byte> out, size_t i) const {
    std::vector<uint32_t> none;
    ENGRAM_CHECK(tier_
                     .CopyRows(layer_index, row_ids.subspan(i, 1),
                               out.subspan(i * row_bytes(), row_bytes()), none)
                     .ok() &&
                 none.empty());
  }
  // Nothing: it has ended.
  std::optional<Asked> Take(size_t index) {
    MutexLock lock(&mutex_);
    Asked& held = asked_.at(index);
    if (std::exchange(held.ended, true)) return std::nullopt;
    return Asked{std::move(held.fetch), std::move(held.done)};
  }
  void Tell(Asked asked, const absl::Status& status) const {
    const RowFetch& fetch = asked.fetch;
    for (const uint32_t i : fetch.wanted) {
      if (!status.ok()) break;
      CopyRow(fetch.layer_index, fetch.row_ids, fetch.out, i);
    }
    asked.done(status);
  }
  // False: there is nothing to do any more.
  bool WaitUntilOpen(size_t index) const {
    MutexLock lock(&mutex_);
    while (!stopping_ && (!open_ || index == asked_.size())) {
      changed_.Wait(&mutex_);
    }
    return open_ && index < asked_.size();
  }
  void Work() {
    for (size_t index = 0; WaitUntilOpen(index); ++index) {
      std::optional<Asked> asked = Take(index);
      if (asked.has_value()) Tell(*std::move(asked), absl::OkStatus());
    }
  }

  const RowTier& tier_;
  const IsCold is_cold_;
  mutable std::atomic<size_t> scans_{0};
  mutable Mutex mutex_;
  mutable CondVar changed_;
  mutable std::deque<Asked> asked_ ABSL_GUARDED_BY(mutex_);
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_TIER_FAKE_ROW_TIER_H_
