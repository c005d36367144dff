#include "table_server/rebalance/rebalancer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "table_server/rebalance/exit_check.h"

namespace engram {
namespace {

// At least once so often, and not more often than this, however many answers
// and loads there are: a look goes over all partitions.
constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kShortestTick = absl::Milliseconds(20);
// Of exchange intervals: then a peer that does not answer counts for nothing.
constexpr int kSilentIntervals = 4;
// In an exit: ExitCheck::Options.
constexpr int kPatienceIntervals = 5;
constexpr int kGiveUpIntervals = 10;
constexpr absl::Duration kShortestTimeout = absl::Seconds(1);

PeerExchange::Options ExchangeOptions(const Manifest& manifest,
                                      const Rebalancer::Options& options) {
  return {.server_name = options.membership.self,
          .instance_id = options.membership.self_instance_id,
          .version = manifest.version(),
          .interval = options.exchange_interval,
          .busy_interval = options.exchange_interval / 5,
          .timeout = std::max(options.exchange_interval, kShortestTimeout)};
}

}  // namespace

Rebalancer::Rebalancer(Parts parts, Options options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      layers_(parts_.manifest->PartitionCounts()),
      hand_over_(*parts_.manifest, options_.hand_over),
      known_(*parts_.manifest),
      answers_(hand_over_, layers_, [this] { Wake(); }),
      tracker_(options_.membership) {}

Rebalancer::~Rebalancer() { Stop(); }

void Rebalancer::Start(PartitionStore& store, PeerCalls& peers,
                       FirstLoad first_load) {
  store_ = &store;
  peers_ = &peers;
  first_load_ = std::move(first_load);
  exchange_ = std::make_unique<PeerExchange>(
      peers, ExchangeOptions(*parts_.manifest, options_), layers_,
      [this] { Wake(); });
  LoadPool::Options loading = options_.loading;
  loading.clock = options_.clock;
  pool_ = std::make_unique<LoadPool>(
      hand_over_, store, loading,
      [this](const PartitionRef& ref, const absl::Status& status) {
        OnLoadEnd(ref, status);
      });
  watcher_ = std::make_unique<MemberWatcher>(
      parts_.members, options_.watching,
      [this](const MemberWatcher::Observation& observation) {
        {
          MutexLock lock(&mutex_);
          observation_ = observation;
        }
        Wake();
      });
  thread_ = std::thread([this] { Run(); });
}

void Rebalancer::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  watcher_.reset();
  if (thread_.joinable()) thread_.join();
  pool_.reset();
}

void Rebalancer::Wake() {
  MutexLock lock(&mutex_);
  woken_ = true;
  changed_.NotifyAll();
}

void Rebalancer::Run() {
  absl::Time last_tick = absl::InfinitePast();
  while (AwaitTick(last_tick)) {
    Tick(options_.clock->Now());
    last_tick = Clock::Steady().Now();
  }
}

bool Rebalancer::AwaitTick(absl::Time last_tick) {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    const absl::Time due = last_tick + (woken_ ? kShortestTick : kTick);
    const absl::Time now = Clock::Steady().Now();
    if (now >= due) break;
    changed_.WaitFor(&mutex_, due - now);
  }
  woken_ = false;
  return !stopping_;
}

void Rebalancer::Tick(absl::Time now) {
  TakeWhatWasTold(now);
  FollowMembers(now);
  GiveUpDamaged(now);
  PaceLoads(now);
  TakeEndedLoads(now);
  CarryOut(now);
  FreeUnused();
  FollowFirstLoad(now);
  SendExchanges(now);
  PublishState(now);
}

absl::Time Rebalancer::HeardSince(absl::Time now) const {
  return now - kSilentIntervals * options_.exchange_interval;
}

absl::Status Rebalancer::WaitUntilReady(absl::Time deadline) {
  MutexLock lock(&mutex_);
  while (!ready_ && fatal_.ok() && changed_.WaitUntil(&mutex_, deadline)) {
  }
  if (ready_) return absl::OkStatus();
  if (!fatal_.ok()) return fatal_;
  return absl::DeadlineExceededError(absl::StrCat(
      "server ", options_.membership.self, " is not ready: ", UnreadyReason()));
}

bool Rebalancer::HandOverAll(absl::Time deadline) {
  answers_.AnnounceExit();
  exiting_.store(true);
  const absl::Duration interval = options_.exchange_interval;
  const ExitCheck check(*parts_.manifest, known_,
                        {.self = options_.membership.self,
                         .began = options_.clock->Now(),
                         .silent_after = kSilentIntervals * interval,
                         .patience = kPatienceIntervals * interval,
                         .give_up_after = kGiveUpIntervals * interval});
  bool told = false;
  while (true) {
    const auto view = hand_over_.view();
    if (view == nullptr) return true;
    const ExitCheck::Finding finding =
        check.Look(hand_over_.HeldPartitions(), *view, options_.clock->Now());
    if (finding.advice == ExitCheck::Advice::kEnd) return true;
    const bool over = finding.advice == ExitCheck::Advice::kNobodyElse ||
                      absl::Now() >= deadline;
    if (!std::exchange(told, true) || over) {
      spdlog::info(
          "{} partitions are not known to be held by another ready server, {} "
          "servers may take them",
          finding.only_here, finding.possible_takers);
    }
    MutexLock lock(&mutex_);
    if (over || stopping_) return false;
    leave_ = leave_ || finding.advice == ExitCheck::Advice::kLeave;
    woken_ = true;
    changed_.NotifyAll();
    changed_.WaitFor(&mutex_, kTick);
  }
}

}  // namespace engram
