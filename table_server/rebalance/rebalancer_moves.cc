// What the rebalancer does with partitions: all changes of what is announced,
// held and in memory, on its thread.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "table_server/rebalance/rebalancer.h"

namespace engram {
namespace {

// Failures in between are counted only: there may be thousands a second.
constexpr absl::Duration kTellFailures = absl::Seconds(1);

}  // namespace

// Rows that nobody else has are waited for: callers fail, or the cluster is not
// there yet. A further copy must not cost those who are served by the others.
void Rebalancer::PaceLoads(absl::Time now) {
  if (hand_over_.view() == nullptr) return;
  const std::vector<PartitionRef> urgent =
      known_.HeldByNone(hand_over_.PartitionsToLoad(), HeardSince(now));
  hand_over_.LoadFirst(urgent);
  pool_->SetPaced(urgent.empty());
}

std::vector<PartitionRef> Rebalancer::MissingOf(const ClusterView& view) const {
  std::vector<PartitionRef> missing;
  for (const PartitionRef& ref : view.owned()) {
    const size_t layer_index = *parts_.manifest->IndexOf(ref.layer);
    if (!parts_.partitions->Holds(layer_index, ToInt(ref.partition))) {
      missing.push_back(ref);
    }
  }
  return missing;
}

void Rebalancer::OnLoadEnd(const PartitionRef& ref,
                           const absl::Status& status) {
  MutexLock lock(&mutex_);
  ended_loads_.push_back({ref, status});
  woken_ = true;
  changed_.NotifyAll();
}

void Rebalancer::TakeEndedLoads(absl::Time now) {
  std::vector<EndedLoad> ended;
  {
    MutexLock lock(&mutex_);
    ended.swap(ended_loads_);
  }
  for (const EndedLoad& load : ended) {
    if (load.status.ok()) {
      TakeLoaded(load.ref);
    } else {
      TakeFailedLoad(load, now);
    }
  }
}

void Rebalancer::TakeLoaded(const PartitionRef& ref) {
  last_failure_.clear();
  const size_t layer_index = *parts_.manifest->IndexOf(ref.layer);
  // Announced before peers can be told to rely on it.
  if (hand_over_.view()->Owns(layer_index, ref.partition)) {
    parts_.partitions->Add(layer_index, ref.partition);
  }
  if (hand_over_.LoadEnded(ref) == HandOver::Loaded::kKeep) return;
  store_->Free(ref);
  hand_over_.Dropped(ref);
  pool_->Wake();  // it may be owned again
}

void Rebalancer::TakeFailedLoad(const EndedLoad& load, absl::Time now) {
  hand_over_.LoadFailed(load.ref, now);
  last_failure_ = std::string(load.status.message());
  ++failures_untold_;
  if (now >= failures_told_ + kTellFailures) {
    spdlog::warn("{} loads failed, the last: {}", failures_untold_,
                 last_failure_);
    failures_told_ = now;
    failures_untold_ = 0;
  }
  if (!absl::IsFailedPrecondition(load.status) &&
      !absl::IsDataLoss(load.status)) {
    return;
  }
  MutexLock lock(&mutex_);
  if (ready_ || !fatal_.ok()) return;
  fatal_ = load.status;
  changed_.NotifyAll();
}

void Rebalancer::OnDamaged(const PartitionRef& ref) {
  MutexLock lock(&mutex_);
  if (!damaged_.insert(ref).second) return;
  woken_ = true;
  changed_.NotifyAll();
}

// Before ended loads are looked at: whoever found the damage had a lease, so
// that what is told of a partition is older than its next load.
void Rebalancer::GiveUpDamaged(absl::Time now) {
  std::set<PartitionRef> damaged;
  {
    MutexLock lock(&mutex_);
    damaged.swap(damaged_);
  }
  Dropping dropping{.damaged = true};
  for (const PartitionRef& ref : damaged) {
    if (!hand_over_.GiveUpDamaged(ref, now)) continue;
    const size_t layer_index = *parts_.manifest->IndexOf(ref.layer);
    parts_.partitions->Withdraw(layer_index, ref.partition);
    dropping.mark = parts_.partitions->Drop(layer_index, ref.partition);
    dropping.partitions.push_back(ref);
    spdlog::error(
        "layer {} partition {} is damaged here: given up, and loaded anew if "
        "it is owned",
        ToInt(ref.layer), ToInt(ref.partition));
  }
  if (!dropping.partitions.empty()) dropping_.push_back(std::move(dropping));
}

void Rebalancer::CarryOut(absl::Time now) {
  HandOver::Actions actions = hand_over_.Advance(now);
  const auto index_of = [&](const PartitionRef& ref) {
    return *parts_.manifest->IndexOf(ref.layer);
  };
  PartitionSet& partitions = *parts_.partitions;
  for (const PartitionRef& ref : actions.announce) {
    partitions.Add(index_of(ref), ref.partition);
  }
  for (const PartitionRef& ref : actions.withdraw) {
    partitions.Withdraw(index_of(ref), ref.partition);
  }
  if (actions.drop.empty()) return;
  LeaseEpochs::Mark mark{};
  for (const PartitionRef& ref : actions.drop) {
    mark = partitions.Drop(index_of(ref), ref.partition);
  }
  dropping_.push_back({.mark = mark, .partitions = std::move(actions.drop)});
}

void Rebalancer::FreeUnused() {
  while (!dropping_.empty() &&
         parts_.partitions->LeasesEnded(dropping_.front().mark)) {
    for (const PartitionRef& ref : dropping_.front().partitions) {
      store_->Free(ref);
      hand_over_.Dropped(ref);
    }
    if (!dropping_.front().damaged) {
      spdlog::info("gave up {} partitions that others hold",
                   dropping_.front().partitions.size());
    }
    dropping_.pop_front();
    pool_->Wake();
  }
}

void Rebalancer::FollowFirstLoad(absl::Time now) {
  const auto view = hand_over_.view();
  if (!first_load_.has_value() || view == nullptr) return;
  if (first_load_->progress) {
    first_load_->progress(std::min(pool_->done_bytes(), first_load_bytes_),
                          first_load_bytes_);
  }
  if (!IsMemberOf(*view) || hand_over_.counts().to_load > 0) return;
  if (first_load_->ready) first_load_->ready(now - first_view_);
  first_load_.reset();
  MutexLock lock(&mutex_);
  ready_ = true;
  changed_.NotifyAll();
}

bool Rebalancer::IsMemberOf(const ClusterView& view) const {
  return std::any_of(
      view.members().begin(), view.members().end(),
      [&](const Member& m) { return m.name == options_.membership.self; });
}

uint64_t Rebalancer::PartitionBytes() const {
  return store_->BytesToLoad({layers_.front().first, PartitionId{0}});
}

}  // namespace engram
