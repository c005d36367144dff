#include "tests/unit/table_server/rebalance/simulated_cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "table_server/rebalance/cluster_view.h"
#include "tests/unit/table_server/rebalance/simulated_server.h"
#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram::test {
namespace {

constexpr size_t kLoadsAtOnce = 3;
constexpr absl::Duration kSourceInterval = absl::Seconds(1);

}  // namespace

SimulatedCluster::Settings SimulatedCluster::Settings::Draw(Random& random) {
  using absl::Milliseconds;
  using absl::Seconds;
  const auto draw = [&](absl::Duration least, absl::Duration most) {
    // Half of them near the least.
    const absl::Duration limit =
        random.Chance(0.5) ? most : least + (most - least) / 20;
    return random.Between(least, limit);
  };
  Settings settings;
  settings.hand_over.announce_linger = draw(Milliseconds(0), Seconds(2));
  settings.hand_over.answer_linger = draw(Milliseconds(0), Seconds(2));
  settings.hand_over.confirm_within = draw(Milliseconds(200), Seconds(5));
  settings.hand_over.retry_load = draw(Milliseconds(10), Seconds(1));
  settings.tick = draw(Milliseconds(50), Milliseconds(500));
  settings.exchange = draw(Milliseconds(100), Seconds(2));
  settings.delay = draw(Milliseconds(5), Seconds(3));
  settings.load = draw(Milliseconds(10), Seconds(2));
  settings.lease = draw(Milliseconds(1), Seconds(2));
  if (random.Chance(0.3)) {  // all is quick but the network
    settings = {};
    settings.hand_over.announce_linger = absl::ZeroDuration();
    settings.hand_over.answer_linger = absl::ZeroDuration();
    settings.hand_over.retry_load = Milliseconds(10);
    settings.tick = settings.load = Milliseconds(50);
    settings.exchange = Milliseconds(200);
    settings.delay = random.Between(Milliseconds(500), Seconds(3));
    settings.lease = Milliseconds(10);
  }
  settings.lost_messages = random.Chance(0.5) ? 0.2 : 0;
  settings.failed_loads = random.Chance(0.5) ? 0.2 : 0;
  return settings;
}

SimulatedCluster::SimulatedCluster(Settings settings, uint64_t seed)
    : settings_(std::move(settings)),
      index_(SmallManifest()),
      random_(seed),
      checks_(index_.size(), settings_.replicas) {}

void SimulatedCluster::Start(const std::string& name) {
  ENGRAM_CHECK(!Runs(name));
  checks_.Note(time_.now(), name, "starts");
  const auto server =
      std::make_shared<Server>(name, next_instance_id_++, settings_.hand_over);
  servers_[name] = server;
  if (settings_.source) {
    MemberTracker::Options options = settings_.membership;
    options.self = name;
    options.self_instance_id = server->instance_id;
    server->tracker.emplace(options);
    Every(*server, kSourceInterval, &SimulatedCluster::AskSource);
  }
  Every(*server, settings_.tick, &SimulatedCluster::Tick);
  Every(*server, settings_.exchange, &SimulatedCluster::ExchangeWithAll);
}

void SimulatedCluster::Every(Server& server, absl::Duration most,
                             void (SimulatedCluster::*what)(Server&)) {
  time_.After(random_.UpTo(most),
              [this, most, what, weak = server.weak_from_this()] {
                const std::shared_ptr<Server> alive = weak.lock();
                if (alive == nullptr) return;
                Every(*alive, most, what);
                (this->*what)(*alive);
              });
}

void SimulatedCluster::Kill(const std::string& name) {
  ENGRAM_CHECK(servers_.erase(name) == 1);
  checks_.Lost(time_.now(), name);
}

void SimulatedCluster::Stop(const std::string& name) {
  checks_.Note(time_.now(), name, "is to stop");
  Server& server = *servers_.at(name);
  server.stopped = time_.now();
  // With one replica nobody else holds anything.
  if (settings_.replicas == 1) server.tracker->Leave();
}

void SimulatedCluster::Leave(const std::string& name) {
  checks_.Note(time_.now(), name, "leaves");
  servers_.at(name)->tracker->Leave();
  EndWhenEmpty(name);
}

void SimulatedCluster::EndWhenEmpty(const std::string& name) {
  servers_.at(name)->end_when_empty = true;
}

void SimulatedCluster::SetView(const std::string& name, const Names& members) {
  Adopt(*servers_.at(name), Members(members));
}

SimulatedCluster::Names SimulatedCluster::Running() const {
  Names names;
  for (const auto& [name, server] : servers_) names.push_back(name);
  return names;
}

void SimulatedCluster::Run(absl::Duration duration) {
  time_.Run(duration, [&] { return !broken().empty(); });
}

void SimulatedCluster::Settle(const Names& members, absl::Duration limit) {
  const absl::Time end = time_.now() + limit;
  const auto is_settled = [&] {
    return std::all_of(servers_.begin(), servers_.end(), [&](const auto& s) {
      return IsSettled(*s.second, members);
    });
  };
  while (broken().empty() && !is_settled()) {
    if (time_.now() >= end) {
      return checks_.Break(time_.now(), "it does not settle: " + Describe());
    }
    Run(absl::Milliseconds(200));
  }
  checks_.Settled();
}

bool SimulatedCluster::IsSettled(const Server& server,
                                 const Names& members) const {
  const auto view = server.hand_over.view();
  if (view == nullptr || server.end_when_empty || server.stopped.has_value()) {
    return false;
  }
  Names names;
  for (const Member& member : view->members()) names.push_back(member.name);
  const HandOver::Counts counts = server.hand_over.counts();
  return names == members &&
         server.hand_over.HeldPartitions() == view->owned() &&
         counts.to_load + counts.loading + counts.lingering == 0;
}

// What each server sees and has to do.
std::string SimulatedCluster::Describe() const {
  std::string text;
  for (const auto& [name, server] : servers_) {
    const HandOver::Counts counts = server->hand_over.counts();
    const auto view = server->hand_over.view();
    absl::StrAppend(&text, name, " sees");
    for (const Member& member : view ? view->members() : Members({})) {
      absl::StrAppend(&text, " ", member.name);
    }
    absl::StrAppend(&text, ": ", counts.to_load, " to load, ", counts.held,
                    " held, ", counts.to_free, " to free; ");
  }
  return text;
}

void SimulatedCluster::AskSource(Server& server) {
  server.tracker->Observe(settings_.source(server.name), time_.now());
}

void SimulatedCluster::Tick(Server& server) {
  if (server.tracker.has_value() && server.tracker->Update(time_.now()) &&
      !server.tracker->view().empty()) {
    Adopt(server, server.tracker->view());
  }
  CarryOut(server);
  StartLoads(server);
  EndIfDone(server);
}

void SimulatedCluster::Adopt(Server& server,
                             const std::vector<Member>& members) {
  checks_.ViewAdopted(members.size());
  std::string sees = "sees";
  for (const Member& member : members) absl::StrAppend(&sees, " ", member.name);
  checks_.Note(time_.now(), server.name, std::move(sees));
  server.hand_over.SetView(
      ClusterView::Create(SmallManifest(), {.self = server.name,
                                            .members = members,
                                            .replicas = settings_.replicas})
          .value());
}

void SimulatedCluster::CarryOut(Server& server) {
  const HandOver::Actions actions = server.hand_over.Advance(time_.now());
  for (const PartitionRef& ref : actions.announce) {
    ++totals_.announced_again;
    Announce(server, ref);
  }
  for (const PartitionRef& ref : actions.withdraw) {
    ++totals_.withdrawn;
    checks_.Withdrawn(time_.now(), server.name, *index_.Find(ref));
  }
  for (const PartitionRef& ref : actions.drop) {
    if (checks_.AnnouncedBy(server.name)[*index_.Find(ref)]) {
      checks_.Break(time_.now(), "dropped while announced");
    }
    DropLater(server, ref, settings_.lease);
  }
}

void SimulatedCluster::DropLater(Server& server, const PartitionRef& ref,
                                 absl::Duration most) {
  time_.After(random_.UpTo(most), [ref, weak = server.weak_from_this()] {
    const auto alive = weak.lock();
    if (alive != nullptr) alive->hand_over.Dropped(ref);
  });
}

void SimulatedCluster::StartLoads(Server& server) {
  while (server.loads_under_way < kLoadsAtOnce) {
    const auto ref = server.hand_over.TakeLoad(time_.now());
    if (!ref.has_value()) return;
    ++server.loads_under_way;
    time_.After(random_.UpTo(settings_.load),
                [this, ref, weak = server.weak_from_this()] {
                  const auto alive = weak.lock();
                  if (alive != nullptr) EndLoad(*alive, *ref);
                });
  }
}

void SimulatedCluster::EndLoad(Server& server, const PartitionRef& ref) {
  --server.loads_under_way;
  if (random_.Chance(settings_.failed_loads)) {
    server.hand_over.LoadFailed(ref, time_.now());
  } else if (server.hand_over.LoadEnded(ref) == HandOver::Loaded::kKeep) {
    ++totals_.loads;
    Announce(server, ref);
  } else {
    ++totals_.discarded;
    DropLater(server, ref, settings_.tick);
  }
}

void SimulatedCluster::EndIfDone(Server& server) {
  const HandOver::Counts counts = server.hand_over.counts();
  bool done = server.end_when_empty && server.hand_over.view() != nullptr &&
              counts.held + counts.loading + counts.lingering == 0;
  if (server.stopped.has_value() && server.hand_over.view() != nullptr) {
    // What was said after this server had stopped to acknowledge.
    const absl::Time since = std::max(time_.now() - SilentAfter(),
                                      *server.stopped + settings_.delay);
    done = server.holdings
               .OnlyHere(server.hand_over.HeldPartitions(),
                         *server.hand_over.view(), since)
               .empty();
  }
  if (done) Kill(server.name);
}

absl::Duration SimulatedCluster::SilentAfter() const {
  return 4 * settings_.exchange + 2 * settings_.delay;
}

void SimulatedCluster::Announce(Server& server, const PartitionRef& ref) {
  checks_.Announced(time_.now(), server.name, *index_.Find(ref));
}

}  // namespace engram::test
