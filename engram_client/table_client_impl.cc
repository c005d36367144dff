#include "engram_client/table_client_impl.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/rpc/channel.h"
#include "core/wire/error_detail.h"
#include "engram_client/plan/check_gather.h"
#include "engram_client/rpc/gather_cache.h"
#include "engram_client/table_client_options.h"

namespace engram {
namespace {

// Once one server has said what the table is, the others get this long to say
// the same before Create returns without them.
constexpr absl::Duration kOthersGrace = absl::Seconds(1);

// Servers that CheckComplete names: its message goes into the errors of calls.
constexpr size_t kProblemsOfACheck = 4;

CallMonitor::Options MonitorOptions(const TableClient::Options& options) {
  CallMonitor::Options monitor;
  monitor.max_hedge_buffer_bytes = options.max_hedge_buffer_bytes;
  monitor.times.first_hedge_delay = options.first_hedge_delay;
  monitor.health.max_servers = options.max_servers;
  monitor.registry = options.metrics;
  return monitor;
}

class GatherHandleImpl final : public GatherHandle {
 public:
  explicit GatherHandleImpl(std::shared_ptr<GatherOperation> operation)
      : operation_(std::move(operation)) {}
  ~GatherHandleImpl() override {
    operation_->Cancel();
    operation_->WaitUntilTold();
  }

  absl::Status Wait() override { return operation_->Wait(); }
  bool done() const override { return operation_->ended(); }
  void Cancel() override { operation_->Cancel(); }
  GatherStats stats() const override { return operation_->stats(); }

 private:
  const std::shared_ptr<GatherOperation> operation_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TableClient>> TableClientImpl::Create(
    Options options, TransportFactory make_transport,
    std::shared_ptr<MemberSource> members) {
  ENGRAM_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<TableClientImpl> client(
      new TableClientImpl(std::move(options), std::move(make_transport)));
  ENGRAM_RETURN_IF_ERROR(client->Connect(std::move(members)));
  return client;
}

TableClientImpl::TableClientImpl(Options options,
                                 TransportFactory make_transport)
    : options_(std::move(options)),
      monitor_(std::make_shared<CallMonitor>(0, MonitorOptions(options_))),
      routing_(0, [this] { OnRoutingChange(); }),
      policy_(&monitor_->health(), &fewest_rows_),
      identity_({}, options_.expected_version),
      transports_(options_.max_servers),
      servers_(options_.max_servers,
               {.make_transport = std::move(make_transport),
                .transports = &transports_,
                .routing = &routing_,
                .identity = &identity_,
                .timers = &timers_,
                .monitor = monitor_.get(),
                .on_answer = [this] { OnAnswer(); }}) {
  monitor_->metrics().gathers_limit.Set(
      static_cast<double>(options_.max_gathers_in_flight));
}

TableClientImpl::~TableClientImpl() {
  watcher_.reset();
  routing_.Stop();
  std::vector<std::shared_ptr<GatherOperation>> gathers;
  {
    MutexLock lock(&mutex_);
    for (const auto& [key, gather] : gathers_) gathers.push_back(gather);
  }
  for (const auto& gather : gathers) gather->Cancel();
  {
    MutexLock lock(&mutex_);
    while (!gathers_.empty()) changed_.Wait(&mutex_);
  }
  servers_.Stop();
  timers_.Stop();
}

absl::Status TableClientImpl::Connect(std::shared_ptr<MemberSource> members) {
  const absl::Time deadline = absl::Now() + options_.connect_timeout;
  if (members == nullptr) {
    servers_.Update(options_.addresses);
  } else {
    watcher_ = std::make_unique<MemberWatcher>(
        std::move(members), MemberWatcher::Options(),
        [this](const MemberWatcher::Observation& look) { OnMembers(look); });
  }
  AwaitTable(deadline);
  ENGRAM_RETURN_IF_ERROR(identity_.conflict());
  const TableInfo* const table = identity_.table();
  if (table == nullptr) return NobodyAnswered();

  environment_.table = table;
  environment_.routing = &routing_;
  environment_.policy = &policy_;
  environment_.timers = &timers_;
  environment_.transports = &transports_;
  environment_.monitor = monitor_;
  environment_.want_crc32c = options_.want_crc32c;
  if (options_.row_cache_bytes > 0) {
    ENGRAM_ASSIGN_OR_RETURN(
        environment_.cache,
        GatherCache::Create(options_.row_cache_bytes, *table, monitor_));
  }
  // Half of what a message may have, so that its other fields fit too.
  environment_.max_rows_per_call =
      std::min<uint64_t>(options_.max_rows_per_call,
                         kMaxMessageBytes / 2 / table->row_format.row_bytes());
  environment_.server_problems = [this] {
    return ServerProblems(options_.max_servers);
  };
  environment_.on_ending = [this] {
    MutexLock lock(&mutex_);
    --gathers_in_flight_;
    monitor_->metrics().gathers_in_flight.Decrement();
  };
  environment_.on_finished = [this](GatherOperation* gather) {
    MutexLock lock(&mutex_);
    gathers_.erase(gather);
    changed_.NotifyAll();
  };
  return absl::OkStatus();
}

void TableClientImpl::AwaitTable(absl::Time deadline) {
  absl::Time until = deadline;
  MutexLock lock(&mutex_);
  while (MayStillChange(identity_.conflict())) {
    const bool known = identity_.table() != nullptr;
    if (known) until = std::min(until, absl::Now() + kOthersGrace);
    if (known && servers_.all_answered()) break;
    if (!changed_.WaitUntil(&mutex_, until)) break;
  }
}

bool TableClientImpl::MayStillChange(const absl::Status& conflict) const {
  const bool replaceable = !options_.members.empty();
  return conflict.ok() ||
         (replaceable && ReasonOf(conflict) == ErrorReason::kWrongTable);
}

void TableClientImpl::OnMembers(const MemberWatcher::Observation& members) {
  bool is_news = false;
  {
    MutexLock lock(&mutex_);
    is_news = look_ != members.status();
    look_ = members.status();
  }
  if (!members.ok()) {
    monitor_->metrics().failed_looks.Increment();
    if (is_news) {
      spdlog::warn("{}: {}", options_.members, members.status().ToString());
    }
    return servers_.RemoveGone();
  }
  if (is_news) {
    spdlog::info("{}: {} members", options_.members, members->size());
  }
  std::vector<std::string> addresses;
  for (const Member& member : *members) {
    // Port 0 is one that only the server itself knows.
    if (absl::EndsWith(member.address, ":0")) continue;
    addresses.push_back(member.address);
  }
  servers_.Update(addresses);
}

absl::Status TableClientImpl::NobodyAnswered() const {
  const std::string problems = ServerProblems(options_.max_servers);
  return absl::UnavailableError(absl::StrCat(
      "no table server",
      options_.expected_version.empty() ? "" : " of table version ",
      options_.expected_version, " said what it serves within ",
      absl::FormatDuration(options_.connect_timeout),
      problems.empty() ? "" : "; ", problems));
}

std::unique_ptr<GatherHandle> TableClientImpl::Prefetch(
    std::vector<LayerGather> layers, absl::Time deadline,
    absl::AnyInvocable<void(const absl::Status&)> done) {
  absl::Status status = CheckGather(table(), layers);
  if (status.ok()) status = CountGather();
  auto gather = status.ok()
                    ? std::make_shared<GatherOperation>(
                          environment_, layers, deadline, std::move(done))
                    : std::make_shared<GatherOperation>(
                          environment_, std::move(status), std::move(done));
  {
    MutexLock lock(&mutex_);
    gathers_.emplace(gather.get(), gather);
  }
  gather->Start();
  return std::make_unique<GatherHandleImpl>(std::move(gather));
}

absl::Status TableClientImpl::CountGather() {
  MutexLock lock(&mutex_);
  if (gathers_in_flight_ >= options_.max_gathers_in_flight) {
    return absl::ResourceExhaustedError(
        absl::StrCat("table ", table().version, ": ", gathers_in_flight_,
                     " gathers are in flight, the limit of this client"));
  }
  ++gathers_in_flight_;
  monitor_->metrics().gathers_in_flight.Increment();
  return absl::OkStatus();
}

absl::Status TableClientImpl::WaitUntilComplete(absl::Time deadline) {
  if (routing_.WaitUntilComplete(deadline)) return absl::OkStatus();
  return absl::DeadlineExceededError(
      Incompleteness(*routing_.snapshot(), options_.max_servers));
}

absl::Status TableClientImpl::CheckComplete() const {
  const auto snapshot = routing_.snapshot();
  if (snapshot->complete()) return absl::OkStatus();
  return absl::UnavailableError(Incompleteness(*snapshot, kProblemsOfACheck));
}

std::string TableClientImpl::Incompleteness(const RoutingSnapshot& snapshot,
                                            size_t max_problems) const {
  std::string text = "no server has announced its partitions";
  if (snapshot.hole().partitions > 0) {
    const RoutingSnapshot::Hole& hole = snapshot.hole();
    text = absl::StrCat(hole.partitions,
                        " partitions have no ready server, the first is layer ",
                        ToInt(table().layers[hole.layer_index].layer_id),
                        " partition ", hole.partition);
  }
  const std::string problems = ServerProblems(max_problems);
  return absl::StrCat("table ", table().version, ": ", text,
                      problems.empty() ? "" : "; ", problems);
}

std::string TableClientImpl::ServerProblems(size_t max_servers) const {
  std::string text;
  size_t told = 0;
  for (const ServerState& state : servers()) {
    if (state.error.empty()) continue;
    if (++told > max_servers) continue;
    absl::StrAppend(&text, text.empty() ? "" : "; ", "server ", state.name,
                    state.name.empty() ? "at " : " at ", state.address, ": ",
                    state.error);
  }
  if (told > max_servers) {
    absl::StrAppend(&text, "; and ", told - max_servers, " more servers");
  }
  MutexLock lock(&mutex_);
  if (look_.ok()) return text;
  return absl::StrCat(text, text.empty() ? "" : "; ", "members ",
                      options_.members, ": ", look_.ToString());
}

void TableClientImpl::OnAnswer() {
  MutexLock lock(&mutex_);
  changed_.NotifyAll();
}

void TableClientImpl::OnRoutingChange() {
  NoteConnected();
  std::vector<std::shared_ptr<GatherOperation>> gathers;
  {
    MutexLock lock(&mutex_);
    for (const auto& [key, gather] : gathers_) gathers.push_back(gather);
  }
  for (const auto& gather : gathers) gather->OnRoutingChange();
}

void TableClientImpl::NoteConnected() {
  // Of two changes at a time the later one counts.
  MutexLock lock(&noting_);
  const auto snapshot = routing_.snapshot();
  size_t connected = 0;
  for (ServerIndex i = 0; i < snapshot->servers().size(); ++i) {
    const bool announced = snapshot->servers()[i].announced;
    monitor_->health().SetAnnounced(i, announced);
    connected += announced ? 1 : 0;
  }
  monitor_->metrics().servers_connected.Set(static_cast<double>(connected));
}

}  // namespace engram
