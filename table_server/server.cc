#include "table_server/server.h"

#include <prometheus/registry.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/progress.h"
#include "core/base/status_macros.h"
#include "core/membership/member_source.h"
#include "core/rpc/admin_server.h"
#include "core/rpc/rpc_server.h"
#include "table_server/loading/http_load_metrics.h"
#include "table_server/loading/make_partition_source.h"
#include "table_server/loading/row_storage.h"
#include "table_server/loading/served_table.h"
#include "table_server/loading/storage_metrics.h"
#include "table_server/partitions/partition_set.h"
#include "table_server/peers/grpc_peer_calls.h"
#include "table_server/peers/peer_source.h"
#include "table_server/rebalance/rebalance_metrics.h"
#include "table_server/rebalance/rebalancer.h"
#include "table_server/server_setup.h"
#include "table_server/service/table_metrics.h"
#include "table_server/service/table_service.h"

namespace engram {
namespace {

constexpr char kServiceName[] = "engram.v1.TableService";

std::vector<LayerId> LayerIdsOf(const Manifest& manifest) {
  std::vector<LayerId> ids;
  for (const ManifestLayer& layer : manifest.layers()) {
    ids.push_back(layer.layer_id);
  }
  return ids;
}

class TableServerImpl final : public TableServer {
 public:
  TableServerImpl(Options options, TableSource source,
                  std::shared_ptr<MemberSource> members)
      : options_(std::move(options)),
        source_(std::move(source)),
        members_(std::move(members)),
        instance_id_(DrawInstanceId()),
        partitions_(source_.manifest),
        registry_(std::make_shared<prometheus::Registry>()),
        metrics_(registry_, LayerIdsOf(source_.manifest)),
        rebalance_metrics_(registry_),
        rebalancer_({.manifest = &source_.manifest,
                     .partitions = &partitions_,
                     .metrics = &rebalance_metrics_,
                     .members = members_},
                    RebalanceOptions(options_, *members_, instance_id_)),
        peer_source_(peers_,
                     [this](const PartitionRef& ref) {
                       return rebalancer_.HoldersOf(ref);
                     },
                     {.version = source_.manifest.version(),
                      .row_bytes = source_.manifest.row_format().row_bytes(),
                      .stop = &stopping_,
                      .seed = instance_id_}) {}

  ~TableServerImpl() override {
    StopMoving();
    admin_.reset();
    rpc_.reset();
  }

  absl::Status Start();

  const std::string& address() const override { return rpc_->address(); }
  const std::string& admin_address() const override { return admin_address_; }
  const std::string& version() const override {
    return source_.manifest.version();
  }

  absl::Status WaitUntilReady(absl::Time deadline) override {
    return rebalancer_.WaitUntilReady(deadline);
  }
  void Drain() override;

 private:
  absl::Status StartRpc();
  absl::Status StartAdmin();
  void OnReady(absl::Duration took);
  void UpdateGauges();
  void StopMoving();
  void RefuseUntilIdle(absl::Time deadline);
  std::string NotReadyReason();

  const Options options_;
  const TableSource source_;
  const std::shared_ptr<MemberSource> members_;
  const uint64_t instance_id_;
  PartitionSet partitions_;
  std::shared_ptr<prometheus::Registry> registry_;
  TableMetrics metrics_;
  RebalanceMetrics rebalance_metrics_;
  std::optional<HttpLoadMetrics> http_metrics_;    // with source_.http
  std::optional<StorageMetrics> storage_metrics_;  // of a local store
  Rebalancer rebalancer_;
  GrpcPeerCalls peers_;
  std::atomic<bool> stopping_{false};
  PeerSource peer_source_;
  std::unique_ptr<RowStorage> storage_;
  std::unique_ptr<RowTier> tier_;  // of storage_
  std::unique_ptr<TableService> service_;
  std::unique_ptr<RpcServer> rpc_;
  std::unique_ptr<AdminServer> admin_;
  std::string admin_address_;
  std::optional<Progress> progress_;  // of the rebalancer's thread

  Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

absl::Status TableServerImpl::Start() {
  if (source_.http != nullptr) http_metrics_.emplace(registry_);
  ENGRAM_ASSIGN_OR_RETURN(
      storage_,
      RowStorage::Create(
          source_,
          {.memory_limit_bytes = options_.available_memory_bytes,
           .max_bytes_in_flight = options_.limits.max_bytes_in_flight,
           .peers = &peer_source_,
           .tiers = options_.tiers,
           .load_threads = options_.load_threads + options_.move_threads}));
  if (storage_->stats().has_value()) storage_metrics_.emplace(registry_);
  storage_->SetOnDamaged(
      [this](const PartitionRef& ref) { rebalancer_.OnDamaged(ref); });
  ENGRAM_RETURN_IF_ERROR(
      CheckShareFits(options_, source_.manifest, *members_, storage_->store()));
  tier_ = storage_->TakeTier();
  if (options_.decorate_tier) {
    tier_ = options_.decorate_tier(std::move(tier_));
  }
  ENGRAM_RETURN_IF_ERROR(StartRpc());
  ENGRAM_RETURN_IF_ERROR(StartAdmin());
  peers_.Start(rpc_->loops());
  if (options_.progress_out != nullptr) {
    progress_.emplace("loading", options_.progress_out, Clock::Real());
  }
  rebalancer_.Start(storage_->store(), peers_,
                    {.progress =
                         [this](uint64_t done_bytes, uint64_t total_bytes) {
                           metrics_.LoadProgress(done_bytes, total_bytes);
                           if (progress_) {
                             progress_->Update(done_bytes, total_bytes);
                           }
                         },
                     .ready = [this](absl::Duration took) { OnReady(took); }});
  return absl::OkStatus();
}

absl::Status TableServerImpl::StartRpc() {
  service_ = std::make_unique<TableService>(
      source_.manifest, partitions_, *tier_, metrics_,
      TableService::Options{.server_name = options_.server_name,
                            .instance_id = instance_id_,
                            .limits = options_.limits,
                            .worker_threads = options_.worker_threads,
                            .cluster = &rebalancer_.calls()});
  ENGRAM_ASSIGN_OR_RETURN(
      rpc_,
      RpcServer::Start({.listen = options_.listen,
                        .services = {service_.get()},
                        .service_names = {kServiceName},
                        .queues = QueuesOf(options_),
                        .queue_service = service_.get(),
                        .max_receive_bytes = service_->max_request_bytes(),
                        .metrics = registry_}));
  return absl::OkStatus();
}

absl::Status TableServerImpl::StartAdmin() {
  AddBuildInfo(*registry_, "table_server");
  if (options_.admin_listen.empty()) return absl::OkStatus();
  ENGRAM_ASSIGN_OR_RETURN(
      admin_, AdminServer::Start(
                  {.listen = options_.admin_listen,
                   .registry = registry_,
                   .before_scrape = [this] { UpdateGauges(); },
                   .not_ready_reason = [this] { return NotReadyReason(); }}));
  admin_address_ = admin_->address();
  return absl::OkStatus();
}

void TableServerImpl::OnReady(absl::Duration took) {
  progress_.reset();
  const TableMetrics::Gauges& gauges = metrics_.gauges();
  const std::vector<RowDefects> defects = storage_->defects();
  for (size_t i = 0; i < defects.size(); ++i) {
    gauges.nan_codes[i]->Set(static_cast<double>(defects[i].nan_codes));
    gauges.nan_scales[i]->Set(static_cast<double>(defects[i].nan_scales));
    if (!defects[i].any()) continue;
    spdlog::warn(
        "layer {} has {} NaN codes and {} NaN scales, which its manifest "
        "allows; they are served as they are",
        ToInt(source_.manifest.layers()[i].layer_id), defects[i].nan_codes,
        defects[i].nan_scales);
  }
  const size_t huge_bytes = tier_->huge_page_bytes();
  gauges.huge_page_bytes->Set(static_cast<double>(huge_bytes));
  const uint64_t bytes = storage_->store().memory_bytes();
  spdlog::info(
      "ready: {} of rows loaded and verified in {}, {}; {} in huge "
      "pages",
      FormatBytes(bytes),
      absl::FormatDuration(absl::Trunc(took, absl::Milliseconds(1))),
      FormatRate(bytes, took), FormatBytes(huge_bytes));
  if (const auto stats = storage_->stats(); stats.has_value()) {
    spdlog::info(
        "{} partitions ({}) are cold: their rows are read from {} through a "
        "cache of {}",
        stats->tiered.cold_partitions, FormatBytes(stats->tiered.cold_bytes),
        options_.tiers.store, FormatBytes(stats->cache.bytes));
  }
  service_->SetReady(true);
  rpc_->SetServing(true);
}

void TableServerImpl::UpdateGauges() {
  service_->UpdateGauges();
  const TableMetrics::Gauges& gauges = metrics_.gauges();
  if (http_metrics_.has_value()) {
    http_metrics_->Update(source_.http->reader->counts());
  }
  gauges.memory_bytes->Set(
      static_cast<double>(storage_->store().memory_bytes()));
  if (const auto stats = storage_->stats(); stats.has_value()) {
    storage_metrics_->Update(*stats);
  }
  const std::shared_ptr<const ClusterView> view = rebalancer_.view();
  if (view == nullptr) return;
  for (size_t i = 0; i < gauges.partitions_owned.size(); ++i) {
    const LayerId layer = source_.manifest.layers()[i].layer_id;
    const auto owned = std::count_if(
        view->owned().begin(), view->owned().end(),
        [&](const PartitionRef& ref) { return ref.layer == layer; });
    gauges.partitions_owned[i]->Set(static_cast<double>(owned));
  }
}

std::string TableServerImpl::NotReadyReason() {
  {
    MutexLock lock(&mutex_);
    if (draining_) return "the server is about to leave";
  }
  return rebalancer_.not_ready_reason();
}

void TableServerImpl::StopMoving() {
  stopping_.store(true);
  rebalancer_.Stop();
  peers_.Stop();
}

void TableServerImpl::Drain() {
  {
    MutexLock lock(&mutex_);
    if (draining_) return;
    draining_ = true;
  }
  rebalancer_.HandOverAll(absl::Now() + options_.drain_hand_over);
  // Stopped first: the end of loading must not say "serving" after this.
  StopMoving();
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
  ENGRAM_ASSIGN_OR_RETURN(TableSource source,
                          OpenServedTable(options.table, options.tiers));
  if (options.load_threads == 0) options.load_threads = LoadThreads();
  ENGRAM_ASSIGN_OR_RETURN(std::shared_ptr<MemberSource> members,
                          OpenMembers(options));
  auto server = std::make_unique<TableServerImpl>(
      std::move(options), std::move(source), std::move(members));
  ENGRAM_RETURN_IF_ERROR(server->Start());
  return server;
}

}  // namespace engram
