#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_REBALANCE_FAKES_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_REBALANCE_FAKES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/mutex.h"
#include "core/membership/member_source.h"
#include "core/model/manifest.h"
#include "core/wire/layer_partitions.h"
#include "table_server/loading/partition_store.h"
#include "table_server/partitions/partition_set.h"
#include "tests/testing/eventually.h"

namespace engram::test {

constexpr size_t kPartitionBytes = 1000;

inline std::vector<LayerPartitionCount> LayersOf(const Manifest& manifest) {
  std::vector<LayerPartitionCount> layers;
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    layers.emplace_back(manifest.layers()[i].layer_id,
                        manifest.partition_count(i));
  }
  return layers;
}

inline std::set<PartitionRef> ToSet(const std::vector<PartitionRef>& refs) {
  return {refs.begin(), refs.end()};
}

// What is announced.
inline std::set<PartitionRef> AnnouncedIn(const PartitionSet& partitions) {
  return ToSet(partitions.ChangesSince(0).added);
}

// Lets nobody through while it is closed.
class Gate {
 public:
  void Close() { Set(false); }
  void Open() { Set(true); }
  // False: it stayed closed for too long.
  bool Pass() {
    const absl::Time deadline = Soon();
    MutexLock lock(&mutex_);
    ++waiting_;
    while (!open_ && changed_.WaitUntil(&mutex_, deadline)) {
    }
    --waiting_;
    return open_;
  }
  size_t waiting() {
    MutexLock lock(&mutex_);
    return waiting_;
  }

 private:
  void Set(bool open) {
    MutexLock lock(&mutex_);
    open_ = open;
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Names whom it is told to name.
class FakeSource final : public MemberSource {
 public:
  explicit FakeSource(absl::StatusOr<std::vector<Member>> answer)
      : answer_(std::move(answer)) {}

  void Set(absl::StatusOr<std::vector<Member>> answer) {
    MutexLock lock(&mutex_);
    answer_ = std::move(answer);
  }
  absl::StatusOr<std::vector<Member>> Read(absl::Time /*deadline*/) override {
    MutexLock lock(&mutex_);
    return answer_;
  }
  bool absence_is_departure() const override { return true; }

 private:
  Mutex mutex_;
  absl::StatusOr<std::vector<Member>> answer_ ABSL_GUARDED_BY(mutex_);
};

// Partitions of kPartitionBytes that are there when a load says so. Fails the
// test when one is loaded twice, or freed while it is held.
class FakeStore final : public PartitionStore {
 public:
  using OnBytes = absl::FunctionRef<absl::Status(size_t)>;
  using LoadFn = std::function<absl::Status(const PartitionRef&, OnBytes)>;

  // `partitions`: of the server; null: there are none.
  FakeStore(const Manifest& manifest, const PartitionSet* partitions)
      : manifest_(manifest), partitions_(partitions) {}

  // What loads do from now on. Without it: all bytes come at once.
  void OnLoad(LoadFn load) {
    MutexLock lock(&mutex_);
    load_ = std::move(load);
  }
  void SetCapacity(size_t partitions) {
    MutexLock lock(&mutex_);
    capacity_ = partitions;
  }
  std::set<PartitionRef> loaded() const {
    MutexLock lock(&mutex_);
    return loaded_;
  }
  size_t loads() const {  // that ended well
    MutexLock lock(&mutex_);
    return loads_;
  }
  size_t most_at_a_time() const {
    MutexLock lock(&mutex_);
    return most_at_a_time_;
  }
  size_t tended() const { return tended_.load(); }
  void Tend() override { tended_.fetch_add(1); }
  absl::Status Load(const PartitionRef& ref, OnBytes on_bytes) override {
    LoadFn load;
    {
      MutexLock lock(&mutex_);
      load = load_;
      most_at_a_time_ = std::max(most_at_a_time_, ++under_way_);
    }
    const absl::Status status =
        load ? load(ref, on_bytes) : on_bytes(kPartitionBytes);
    MutexLock lock(&mutex_);
    --under_way_;
    if (!status.ok()) return status;
    ++loads_;
    EXPECT_TRUE(loaded_.insert(ref).second) << "loaded twice";
    return absl::OkStatus();
  }
  void Free(const PartitionRef& ref) override {
    if (partitions_ != nullptr) {
      EXPECT_FALSE(partitions_->Holds(*manifest_.IndexOf(ref.layer),
                                      ToInt(ref.partition)));
    }
    MutexLock lock(&mutex_);
    EXPECT_EQ(loaded_.erase(ref), 1U) << "freed and not loaded";
  }
  absl::Status CheckFits(absl::Span<const PartitionRef> wanted) override {
    MutexLock lock(&mutex_);
    if (wanted.size() <= capacity_) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat(wanted.size(), " partitions wanted, ", capacity_, " fit"));
  }
  uint64_t BytesToLoad(const PartitionRef& /*ref*/) const override {
    return kPartitionBytes;
  }
  uint64_t memory_bytes() const override {
    return loaded().size() * kPartitionBytes;
  }

 private:
  const Manifest& manifest_;
  const PartitionSet* const partitions_;
  std::atomic<size_t> tended_{0};
  mutable Mutex mutex_;
  LoadFn load_ ABSL_GUARDED_BY(mutex_);
  size_t capacity_ ABSL_GUARDED_BY(mutex_) = SIZE_MAX;
  std::set<PartitionRef> loaded_ ABSL_GUARDED_BY(mutex_);
  size_t loads_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t most_at_a_time_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_REBALANCE_REBALANCE_FAKES_H_
