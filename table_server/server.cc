#include "table_server/server.h"

#include <prometheus/registry.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/notification.h"
#include "core/base/numa.h"
#include "core/base/progress.h"
#include "core/base/status_macros.h"
#include "core/model/config.h"
#include "core/model/presets.h"
#include "core/placement/placement.h"
#include "core/rpc/admin_server.h"
#include "core/rpc/rpc_server.h"
#include "table_server/loading/available_memory.h"
#include "table_server/loading/loader.h"
#include "table_server/loading/table_source.h"
#include "table_server/membership/membership.h"
#include "table_server/partitions/partition_set.h"
#include "table_server/service/table_metrics.h"
#include "table_server/service/table_service.h"
#include "table_server/tier/host_tier.h"
#include "table_server/tier/synthetic_tier.h"

namespace engram {
namespace {

constexpr char kServiceName[] = "engram.v1.TableService";

uint64_t DrawInstanceId() {
  std::random_device device;
  const uint64_t high = device();
  return std::max<uint64_t>(1, high << 32 | device());
}

absl::StatusOr<EngramConfig> SyntheticConfig(
    const TableServer::Options& options) {
  if (!options.preset.empty()) return PresetConfig(options.preset);
  if (!options.config_path.empty()) return LoadConfig(options.config_path);
  if (!options.checkpoint_dir.empty()) {
    return LoadConfig(options.checkpoint_dir + "/config.json");
  }
  return absl::InvalidArgumentError(
      "a synthetic table needs a preset, a config file or a checkpoint "
      "directory with one");
}

absl::StatusOr<TableSource> OpenSource(const TableServer::Options& options) {
  ENGRAM_ASSIGN_OR_RETURN(const std::optional<uint64_t> seed,
                          ParseSource(options.source));
  if (seed.has_value()) {
    ENGRAM_ASSIGN_OR_RETURN(const EngramConfig config,
                            SyntheticConfig(options));
    return MakeSyntheticSource(config, *seed);
  }
  if (options.checkpoint_dir.empty()) {
    return absl::InvalidArgumentError("no checkpoint directory is given");
  }
  return OpenCheckpointSource(options.checkpoint_dir);
}

absl::StatusOr<std::vector<Member>> MembersOf(
    const TableServer::Options& options) {
  ENGRAM_RETURN_IF_ERROR(CheckServerName(options.server_name));
  if (options.members.empty()) {
    return std::vector<Member>{{options.server_name, options.listen}};
  }
  ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<Membership> membership,
                          Membership::Parse(options.members));
  std::vector<Member> members = membership->Current();
  ENGRAM_RETURN_IF_ERROR(CheckIsMember(members, options.server_name));
  return members;
}

// What `options.server_name` owns, among the layers it is to serve.
absl::StatusOr<std::vector<PartitionRef>> OwnedPartitions(
    const TableServer::Options& options, const Manifest& manifest) {
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<Member> members,
                          MembersOf(options));
  for (const LayerId layer : options.layers) {
    if (manifest.IndexOf(layer).ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", ToInt(layer), " is not in this table"));
  }
  Placement::Options placement_options{.table = manifest.table(),
                                       .replicas = options.replicas};
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    placement_options.layers.push_back(
        {manifest.layers()[i].layer_id, manifest.partition_count(i)});
  }
  for (const Member& member : members) {
    placement_options.members.push_back({member.name});
  }
  ENGRAM_ASSIGN_OR_RETURN(const Placement placement,
                          Placement::Create(std::move(placement_options)));
  ENGRAM_ASSIGN_OR_RETURN(std::vector<PartitionRef> owned,
                          placement.OwnedBy(options.server_name));
  std::erase_if(owned, [&](const PartitionRef& ref) {
    return !options.layers.empty() &&
           std::find(options.layers.begin(), options.layers.end(), ref.layer) ==
               options.layers.end();
  });
  return owned;
}

uint64_t CountIn(const std::vector<PartitionRef>& owned, LayerId layer) {
  return static_cast<uint64_t>(std::count_if(
      owned.begin(), owned.end(),
      [&](const PartitionRef& ref) { return ref.layer == layer; }));
}

absl::Status CheckMemoryFor(const TableServer::Options& options,
                            const Manifest& manifest,
                            const std::vector<PartitionRef>& owned) {
  AvailableMemory available{options.available_memory_bytes, "its option"};
  if (available.bytes == 0) {
    ENGRAM_ASSIGN_OR_RETURN(available, ReadAvailableMemory(""));
  }
  std::vector<LayerMemory> needed;
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    const LayerId layer = manifest.layers()[i].layer_id;
    needed.push_back({layer, HostTier::BytesNeeded(manifest, i, owned),
                      CountIn(owned, layer)});
  }
  return CheckMemory(needed, options.limits.max_bytes_in_flight, available);
}

std::vector<LayerId> LayerIdsOf(const Manifest& manifest) {
  std::vector<LayerId> ids;
  for (const ManifestLayer& layer : manifest.layers()) {
    ids.push_back(layer.layer_id);
  }
  return ids;
}

// One thread a queue: then a connection is mostly served by one thread, which
// waits for no other that holds the connection. Each stays on one NUMA node.
std::vector<QueueLoop::Options> QueuesOf(const TableServer::Options& options) {
  const size_t threads =
      options.rpc_threads > 0
          ? options.rpc_threads
          : std::max<size_t>(1, std::thread::hardware_concurrency());
  const NumaTopology topology = ThisNumaTopology();
  const size_t node_count = topology.nodes.size();
  std::vector<QueueLoop::Options> queues(threads);
  for (size_t i = 0; i < queues.size(); ++i) {
    if (node_count > 1) queues[i].cpus = topology.nodes[i % node_count].cpus;
  }
  return queues;
}

class TableServerImpl final : public TableServer {
 public:
  TableServerImpl(Options options, TableSource source,
                  std::vector<PartitionRef> owned)
      : options_(std::move(options)),
        source_(std::move(source)),
        owned_(std::move(owned)),
        partitions_(source_.manifest),
        registry_(std::make_shared<prometheus::Registry>()),
        metrics_(registry_, LayerIdsOf(source_.manifest)) {}

  ~TableServerImpl() override {
    StopLoading();
    admin_.reset();
    rpc_.reset();
  }

  absl::Status Start();

  const std::string& address() const override { return rpc_->address(); }
  const std::string& admin_address() const override { return admin_address_; }
  const std::string& version() const override {
    return source_.manifest.version();
  }

  absl::Status WaitUntilReady(absl::Time deadline) override;
  void Drain() override;

 private:
  absl::Status MakeTier();
  absl::Status StartAdmin();
  void Load();
  absl::Status LoadRows();
  void ReportLoaded(const LoadReport& report, absl::Duration took);
  void StopLoading();
  void RefuseUntilIdle(absl::Time deadline);
  std::string NotReadyReason();

  const Options options_;
  const TableSource source_;
  const std::vector<PartitionRef> owned_;
  PartitionSet partitions_;
  std::shared_ptr<prometheus::Registry> registry_;
  TableMetrics metrics_;
  std::unique_ptr<RowTier> tier_;
  HostTier* host_tier_ = nullptr;  // in tier_, where rows are loaded
  std::unique_ptr<TableService> service_;
  std::unique_ptr<RpcServer> rpc_;
  std::unique_ptr<AdminServer> admin_;
  std::string admin_address_;

  std::atomic<bool> stop_loading_{false};
  Notification loaded_;
  Mutex mutex_;
  absl::Status load_status_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread loading_thread_;
};

absl::Status TableServerImpl::Start() {
  ENGRAM_RETURN_IF_ERROR(MakeTier());
  if (options_.decorate_tier) {
    tier_ = options_.decorate_tier(std::move(tier_));
  }
  service_ = std::make_unique<TableService>(
      source_.manifest, partitions_, *tier_, metrics_,
      TableService::Options{.server_name = options_.server_name,
                            .instance_id = DrawInstanceId(),
                            .limits = options_.limits,
                            .worker_threads = options_.worker_threads});
  ENGRAM_ASSIGN_OR_RETURN(
      rpc_,
      RpcServer::Start({.listen = options_.listen,
                        .services = {service_.get()},
                        .service_names = {kServiceName},
                        .queues = QueuesOf(options_),
                        .queue_service = service_.get(),
                        .max_receive_bytes = service_->max_request_bytes()}));
  ENGRAM_RETURN_IF_ERROR(StartAdmin());
  loading_thread_ = std::thread([this] { Load(); });
  return absl::OkStatus();
}

absl::Status TableServerImpl::MakeTier() {
  const Manifest& manifest = source_.manifest;
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    metrics_.gauges().partitions_owned[i]->Set(
        static_cast<double>(CountIn(owned_, manifest.layers()[i].layer_id)));
  }
  if (!source_.checkpoint.has_value()) {
    tier_ = std::make_unique<SyntheticTier>(manifest, source_.synthetic_seed);
    return absl::OkStatus();
  }
  ENGRAM_RETURN_IF_ERROR(CheckMemoryFor(options_, manifest, owned_));
  const std::vector<int> nodes = ThisNumaTopology().NodesWithMemory();
  if (nodes.size() > 1) {
    spdlog::info("rows are spread over {} NUMA nodes", nodes.size());
  }
  ENGRAM_ASSIGN_OR_RETURN(std::unique_ptr<HostTier> tier,
                          HostTier::Create(manifest, owned_, nodes));
  metrics_.gauges().memory_bytes->Set(
      static_cast<double>(tier->memory_bytes()));
  host_tier_ = tier.get();
  tier_ = std::move(tier);
  return absl::OkStatus();
}

absl::Status TableServerImpl::StartAdmin() {
  AddBuildInfo(*registry_, "table_server");
  if (options_.admin_listen.empty()) return absl::OkStatus();
  ENGRAM_ASSIGN_OR_RETURN(
      admin_, AdminServer::Start(
                  {.listen = options_.admin_listen,
                   .registry = registry_,
                   .before_scrape = [this] { service_->UpdateGauges(); },
                   .not_ready_reason = [this] { return NotReadyReason(); }}));
  admin_address_ = admin_->address();
  return absl::OkStatus();
}

void TableServerImpl::Load() {
  const absl::Status status = LoadRows();
  {
    MutexLock lock(&mutex_);
    load_status_ = status;
  }
  if (status.ok()) {
    service_->SetReady(true);
    rpc_->SetServing(true);
  }
  loaded_.Notify();
}

absl::Status TableServerImpl::LoadRows() {
  if (host_tier_ == nullptr) {
    for (const PartitionRef& ref : owned_) {
      ENGRAM_ASSIGN_OR_RETURN(const size_t index,
                              source_.manifest.IndexOf(ref.layer));
      partitions_.Add(index, ref.partition);
    }
    return absl::OkStatus();
  }
  const absl::Time start = absl::Now();
  std::optional<Progress> progress;
  if (options_.progress_out != nullptr) {
    progress.emplace("loading", options_.progress_out, Clock::Real());
  }
  Loader loader(*source_.checkpoint, source_.manifest, *host_tier_, partitions_,
                {.thread_count = options_.load_threads,
                 .progress =
                     [&](uint64_t done_bytes, uint64_t total_bytes) {
                       metrics_.LoadProgress(done_bytes, total_bytes);
                       if (progress) progress->Update(done_bytes, total_bytes);
                     },
                 .stop = &stop_loading_});
  ENGRAM_ASSIGN_OR_RETURN(const LoadReport report, loader.Load(owned_));
  progress.reset();
  ReportLoaded(report, absl::Now() - start);
  return absl::OkStatus();
}

void TableServerImpl::ReportLoaded(const LoadReport& report,
                                   absl::Duration took) {
  const TableMetrics::Gauges& gauges = metrics_.gauges();
  for (size_t i = 0; i < report.defects.size(); ++i) {
    const RowDefects& defects = report.defects[i];
    gauges.nan_codes[i]->Set(static_cast<double>(defects.nan_codes));
    gauges.nan_scales[i]->Set(static_cast<double>(defects.nan_scales));
    if (!defects.any()) continue;
    spdlog::warn(
        "layer {} has {} NaN codes and {} NaN scales, which its manifest "
        "allows; they are served as they are",
        ToInt(source_.manifest.layers()[i].layer_id), defects.nan_codes,
        defects.nan_scales);
  }
  const size_t huge_bytes = tier_->huge_page_bytes();
  gauges.huge_page_bytes->Set(static_cast<double>(huge_bytes));
  spdlog::info(
      "loaded and verified {} partitions, {} in {}, {}; {} in huge "
      "pages",
      owned_.size(), FormatBytes(report.bytes),
      absl::FormatDuration(absl::Trunc(took, absl::Milliseconds(1))),
      FormatRate(report.bytes, took), FormatBytes(huge_bytes));
}

absl::Status TableServerImpl::WaitUntilReady(absl::Time deadline) {
  if (!loaded_.WaitUntil(deadline)) {
    return absl::DeadlineExceededError(
        absl::StrCat("server ", options_.server_name, " is still loading"));
  }
  MutexLock lock(&mutex_);
  return load_status_;
}

std::string TableServerImpl::NotReadyReason() {
  if (!loaded_.HasBeenNotified()) return "partitions are being loaded";
  MutexLock lock(&mutex_);
  if (draining_) return "the server is about to leave";
  return load_status_.ok() ? "" : std::string(load_status_.message());
}

void TableServerImpl::StopLoading() {
  stop_loading_.store(true);
  if (loading_thread_.joinable()) loading_thread_.join();
}

void TableServerImpl::Drain() {
  {
    MutexLock lock(&mutex_);
    if (draining_) return;
    draining_ = true;
  }
  // Joined first: the end of loading must not say "serving" after this.
  StopLoading();
  rpc_->SetServing(false);
  partitions_.AnnounceDraining();
  spdlog::info("draining: serving on for {} while clients leave",
               absl::FormatDuration(options_.drain_grace));
  absl::SleepFor(options_.drain_grace);
  service_->StopAccepting();
  const absl::Time deadline = absl::Now() + options_.drain_calls;
  RefuseUntilIdle(deadline);
  rpc_->Shutdown(deadline);
}

// gRPC cancels what reaches a server that shuts down. So calls are answered,
// with DRAINING, until the last of them is likely to have arrived.
void TableServerImpl::RefuseUntilIdle(absl::Time deadline) {
  constexpr absl::Duration kAtLeast = absl::Milliseconds(500);
  constexpr absl::Duration kPoll = absl::Milliseconds(10);
  const bool in_a_hurry = options_.drain_grace == absl::ZeroDuration();
  const absl::Time earliest =
      absl::Now() + (in_a_hurry ? absl::ZeroDuration() : kAtLeast);
  while (absl::Now() < deadline &&
         (absl::Now() < earliest || !service_->Idle())) {
    absl::SleepFor(kPoll);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TableServer>> TableServer::Create(
    Options options) {
  ENGRAM_ASSIGN_OR_RETURN(TableSource source, OpenSource(options));
  ENGRAM_ASSIGN_OR_RETURN(std::vector<PartitionRef> owned,
                          OwnedPartitions(options, source.manifest));
  auto server = std::make_unique<TableServerImpl>(
      std::move(options), std::move(source), std::move(owned));
  ENGRAM_RETURN_IF_ERROR(server->Start());
  return server;
}

}  // namespace engram
