#include "engram_client/table_client.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/rpc/address.h"
#include "core/rpc/channel.h"
#include "engram_client/plan/check_gather.h"
#include "engram_client/rpc/grpc_table_transport.h"
#include "engram_client/table_client_impl.h"

namespace engram {
namespace {

// Once one server has said what the table is, the others get this long to say
// the same before Create returns without them.
constexpr absl::Duration kOthersGrace = absl::Seconds(1);

constexpr size_t kMaxPollThreads = 64;
constexpr absl::Duration kMaxSpin = absl::Milliseconds(1);

absl::Status CheckOptions(const TableClient::Options& options) {
  if (options.addresses.empty()) {
    return absl::InvalidArgumentError("no table server addresses");
  }
  for (size_t i = 0; i < options.addresses.size(); ++i) {
    ENGRAM_RETURN_IF_ERROR(CheckAddress(options.addresses[i]));
    for (size_t j = 0; j < i; ++j) {
      if (options.addresses[i] != options.addresses[j]) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "table server address ", options.addresses[i], " is listed twice"));
    }
  }
  if (options.max_rows_per_call == 0 || options.max_gathers_in_flight == 0) {
    return absl::InvalidArgumentError(
        "max_rows_per_call and max_gathers_in_flight must be above 0");
  }
  if (options.poll_threads > kMaxPollThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("poll_threads is ", options.poll_threads,
                     ", the limit is ", kMaxPollThreads));
  }
  if (options.first_hedge_delay <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "first_hedge_delay is ",
        absl::FormatDuration(options.first_hedge_delay), ", not above 0"));
  }
  if (options.spin < absl::ZeroDuration() || options.spin > kMaxSpin) {
    return absl::InvalidArgumentError(
        absl::StrCat("spin is ", absl::FormatDuration(options.spin),
                     ", not 0 .. ", absl::FormatDuration(kMaxSpin)));
  }
  return absl::OkStatus();
}

size_t PollThreads(const TableClient::Options& options) {
  if (options.poll_threads > 0) return options.poll_threads;
  return std::clamp<size_t>(std::thread::hardware_concurrency() / 4, 1, 4);
}

CallMonitor::Options MonitorOptions(const TableClient::Options& options) {
  CallMonitor::Options monitor;
  monitor.max_hedge_buffer_bytes = options.max_hedge_buffer_bytes;
  monitor.times.first_hedge_delay = options.first_hedge_delay;
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

absl::StatusOr<std::unique_ptr<TableClient>> TableClient::Create(
    Options options) {
  ENGRAM_RETURN_IF_ERROR(CheckOptions(options));  // before threads start
  // The transports keep them.
  const auto loops = std::make_shared<ClientLoops>(ClientLoops::Options{
      .loop_count = PollThreads(options), .spin = options.spin});
  return TableClientImpl::Create(
      std::move(options), [loops](const std::string& address) {
        return MakeGrpcTableTransport(address, loops);
      });
}

absl::StatusOr<std::unique_ptr<TableClient>> TableClientImpl::Create(
    Options options, const TransportFactory& make_transport) {
  ENGRAM_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<TableClientImpl> client(
      new TableClientImpl(std::move(options), make_transport));
  ENGRAM_RETURN_IF_ERROR(client->Connect());
  return client;
}

TableClientImpl::TableClientImpl(Options options,
                                 const TransportFactory& make_transport)
    : options_(std::move(options)),
      monitor_(std::make_shared<CallMonitor>(options_.addresses.size(),
                                             MonitorOptions(options_))),
      routing_(options_.addresses.size(), [this] { OnRoutingChange(); }),
      policy_(&monitor_->health(), &fewest_rows_),
      identity_(options_.addresses, options_.expected_version),
      answered_(options_.addresses.size()) {
  monitor_->metrics().gathers_limit.Set(
      static_cast<double>(options_.max_gathers_in_flight));
  for (ServerIndex i = 0; i < options_.addresses.size(); ++i) {
    transports_.push_back(make_transport(options_.addresses[i]));
    environment_.transports.push_back(transports_.back().get());
    connections_.push_back(std::make_unique<ServerConnection>(
        i, options_.addresses[i],
        ServerConnection::Environment{
            .transport = transports_.back().get(),
            .routing = &routing_,
            .identity = &identity_,
            .timers = &timers_,
            .on_answer = [this](ServerIndex server) { OnAnswer(server); }}));
  }
}

TableClientImpl::~TableClientImpl() {
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
  for (const auto& connection : connections_) connection->Stop();
  timers_.Stop();
  transports_.clear();
}

absl::Status TableClientImpl::Connect() {
  for (const auto& connection : connections_) connection->Start();
  const absl::Time deadline = absl::Now() + options_.connect_timeout;
  absl::Time until = deadline;
  {
    MutexLock lock(&mutex_);
    while (identity_.conflict().ok()) {
      const bool known = identity_.table() != nullptr;
      if (known) until = std::min(until, absl::Now() + kOthersGrace);
      const bool all = std::count(answered_.begin(), answered_.end(), true) ==
                       static_cast<int64_t>(answered_.size());
      if (known && all) break;
      if (!changed_.WaitUntil(&mutex_, until)) break;
    }
  }
  ENGRAM_RETURN_IF_ERROR(identity_.conflict());
  const TableInfo* const table = identity_.table();
  if (table == nullptr) return NobodyAnswered();

  environment_.table = table;
  environment_.routing = &routing_;
  environment_.policy = &policy_;
  environment_.timers = &timers_;
  environment_.monitor = monitor_;
  environment_.want_crc32c = options_.want_crc32c;
  // Half of what a message may have, so that its other fields fit too.
  environment_.max_rows_per_call =
      std::min<uint64_t>(options_.max_rows_per_call,
                         kMaxMessageBytes / 2 / table->row_format.row_bytes());
  environment_.server_problems = [this] { return ServerProblems(); };
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

absl::Status TableClientImpl::NobodyAnswered() const {
  const std::string problems = ServerProblems();
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
  const auto snapshot = routing_.snapshot();
  std::string text = "no server has announced its partitions";
  if (snapshot->hole().partitions > 0) {
    const RoutingSnapshot::Hole& hole = snapshot->hole();
    text = absl::StrCat(hole.partitions,
                        " partitions have no ready server, the first is layer ",
                        ToInt(table().layers[hole.layer_index].layer_id),
                        " partition ", hole.partition);
  }
  const std::string problems = ServerProblems();
  return absl::DeadlineExceededError(
      absl::StrCat("table ", table().version, ": ", text,
                   problems.empty() ? "" : "; ", problems));
}

std::vector<TableClient::ServerState> TableClientImpl::servers() const {
  std::vector<ServerState> states;
  for (const auto& connection : connections_) {
    states.push_back(connection->state());
  }
  return states;
}

std::string TableClientImpl::ServerProblems() const {
  std::string text;
  for (const ServerState& state : servers()) {
    if (state.error.empty()) continue;
    absl::StrAppend(&text, text.empty() ? "" : "; ", "server ", state.name,
                    state.name.empty() ? "at " : " at ", state.address, ": ",
                    state.error);
  }
  return text;
}

void TableClientImpl::OnAnswer(ServerIndex server) {
  MutexLock lock(&mutex_);
  answered_[server] = true;
  changed_.NotifyAll();
}

void TableClientImpl::OnRoutingChange() {
  const auto snapshot = routing_.snapshot();
  for (ServerIndex server = 0; server < options_.addresses.size(); ++server) {
    monitor_->health().SetAnnounced(server,
                                    snapshot->servers()[server].announced);
  }
  std::vector<std::shared_ptr<GatherOperation>> gathers;
  {
    MutexLock lock(&mutex_);
    for (const auto& [key, gather] : gathers_) gathers.push_back(gather);
  }
  for (const auto& gather : gathers) gather->OnRoutingChange();
}

}  // namespace engram
