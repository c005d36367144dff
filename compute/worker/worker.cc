#include "compute/worker/worker.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/checkpoint.h"
#include "core/model/manifest.h"
#include "core/model/token_map.h"
#include "core/wire/error_detail.h"

namespace engram {
namespace {

// How long a wait for table servers blocks; between waits the thread looks
// whether the worker is stopping. Each new client gets longer to connect than
// the one before: one look for members may take 3 s, the first answer of a busy
// server as long again.
constexpr absl::Duration kLongestConnect = absl::Seconds(10);
constexpr absl::Duration kPartitionsSlice = absl::Seconds(2);
constexpr absl::Duration kTickPeriod = absl::Milliseconds(10);

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "worker";
  return name.data();
}

Worker::Options WithDefaults(Worker::Options options) {
  if (options.worker_name.empty()) options.worker_name = HostName();
  if (options.token_map_path.empty()) {
    options.token_map_path =
        absl::StrCat(options.checkpoint_dir, "/", kTokenMapFileName);
  }
  return options;
}

// The version of the checkpoint's rows, by its manifest.
absl::StatusOr<std::string> LoadVersion(const Checkpoint& checkpoint) {
  const std::string path =
      absl::StrCat(checkpoint.dir(), "/", kManifestFileName);
  const absl::StatusOr<Manifest> manifest = Manifest::Load(path);
  if (absl::IsNotFound(manifest.status())) {
    return absl::NotFoundError(
        absl::StrCat(path, " is missing; make it with: engramctl manifest ",
                     checkpoint.dir()));
  }
  ENGRAM_RETURN_IF_ERROR(manifest.status());
  ENGRAM_RETURN_IF_ERROR(
      Annotate(CheckManifestMatches(*manifest, checkpoint), path));
  return manifest->version();
}

}  // namespace

Worker::Worker(Options options)
    : options_(WithDefaults(std::move(options))),
      registry_(std::make_shared<prometheus::Registry>()),
      metrics_(*registry_),
      compute_pool_({.thread_count = options_.compute_threads}) {}

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(Options options) {
  std::unique_ptr<Worker> worker(new Worker(std::move(options)));
  ENGRAM_RETURN_IF_ERROR(worker->Load());
  ENGRAM_RETURN_IF_ERROR(worker->Listen());
  worker->connect_thread_ = std::thread([w = worker.get()] { w->Connect(); });
  worker->tick_thread_ =
      std::thread([w = worker.get()] { w->TickUntilStopped(); });
  return worker;
}

absl::Status Worker::Load() {
  ENGRAM_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                          Checkpoint::Open(options_.checkpoint_dir));
  ENGRAM_ASSIGN_OR_RETURN(const std::string version, LoadVersion(checkpoint));
  ENGRAM_RETURN_IF_ERROR(CreateBlock(checkpoint));
  engine_ = std::make_unique<StepEngine>(
      StepEngine::Options{.version = version,
                          .worker_name = options_.worker_name,
                          .block = block_.get(),
                          .compute_pool = &compute_pool_,
                          .metrics = &metrics_,
                          .max_tokens_per_step = options_.max_tokens_per_step,
                          .step_timeout = options_.step_timeout,
                          .max_tokens_per_run = block_->tile_tokens()});
  spdlog::info("{}: weights of layers {} of table version {} are loaded",
               options_.checkpoint_dir,
               absl::StrJoin(block_->config().layer_ids, ", "), version);
  return absl::OkStatus();
}

absl::Status Worker::CreateBlock(const Checkpoint& checkpoint) {
  ENGRAM_ASSIGN_OR_RETURN(
      const TokenMap token_map,
      TokenMap::Load(options_.token_map_path, checkpoint.config()));
  ENGRAM_ASSIGN_OR_RETURN(ChosenBlock chosen,
                          CreateEngramBlock(checkpoint, token_map,
                                            &compute_pool_, options_.compute));
  block_ = std::move(chosen.block);
  const std::string device = chosen.device.Name();
  const char* const projection = ToString(block_->projection_mode());
  spdlog::info("computing on {} ({}), projection {}", device,
               chosen.device.reason, projection);
  metrics_.SetDevice(
      device, chosen.device.gpu.has_value() ? chosen.device.gpu->name : "",
      projection);
  return absl::OkStatus();
}

absl::Status Worker::Listen() {
  service_ = std::make_unique<ComputeServiceImpl>(ComputeServiceImpl::Options{
      .engine = engine_.get(), .limits = ForwardLimits::For(*engine_)});
  ENGRAM_ASSIGN_OR_RETURN(
      rpc_server_,
      RpcServer::Start({.listen = options_.listen,
                        .services = {service_.get()},
                        .service_names = {"engram.v1.ComputeService"},
                        .metrics = registry_}));
  if (options_.admin.empty()) return absl::OkStatus();
  AddBuildInfo(*registry_, "compute-worker");
  ENGRAM_ASSIGN_OR_RETURN(admin_server_,
                          AdminServer::Start({.listen = options_.admin,
                                              .registry = registry_,
                                              .not_ready_reason = [this] {
                                                return NotReadyReason();
                                              }}));
  spdlog::info("admin page on {}", admin_server_->address());
  return absl::OkStatus();
}

Worker::~Worker() {
  StopConnecting();
  stopping_.Notify();
  if (tick_thread_.joinable()) tick_thread_.join();
  admin_server_ = nullptr;
  if (rpc_server_ != nullptr) rpc_server_->Shutdown(absl::Now());
  rpc_server_ = nullptr;
  // Steps use the rows' source and, through their ends, the service's calls.
  engine_ = nullptr;
}

std::string Worker::admin_address() const {
  return admin_server_ == nullptr ? "" : admin_server_->address();
}

// ---- from listening to ready ----

void Worker::Connect() {
  absl::Status status = ConnectTables();
  if (status.ok()) status = AwaitPartitions();
  if (status.ok()) status = block_->health();
  if (status.ok()) {
    row_source_ =
        std::make_unique<RemoteRowSource>(table_client_.get(), &metrics_);
    engine_->SetRowSource(row_source_.get());
    SetServing();
  }
  {
    MutexLock lock(&mutex_);
    connect_status_ = std::move(status);
  }
  connected_.Notify();
}

absl::Status Worker::ConnectTables() {
  // One gather a layer, of every step that the engine may admit.
  const uint64_t max_gathers =
      engine_->options().max_steps_in_flight * block_->layout().layers().size();
  for (absl::Duration timeout = options_.connect_timeout; !leaving();
       timeout = std::min(2 * timeout, kLongestConnect)) {
    auto client =
        TableClient::Create({.addresses = options_.table_addresses,
                             .members = options_.table_members,
                             .expected_version = version(),
                             .max_gathers_in_flight = max_gathers,
                             .want_crc32c = options_.want_crc32c,
                             .connect_timeout = timeout,
                             .row_cache_bytes = options_.row_cache_bytes,
                             .metrics = registry_});
    if (client.ok()) {
      ENGRAM_RETURN_IF_ERROR(CheckTables((*client)->table()));
      table_client_ = *std::move(client);
      return absl::OkStatus();
    }
    if (!absl::IsUnavailable(client.status()) &&
        !absl::IsDeadlineExceeded(client.status()) &&
        !MayBeReplaced(client.status())) {
      return Annotate(client.status(),
                      absl::StrCat("checkpoint ", options_.checkpoint_dir,
                                   " is table version ", version(),
                                   ", but its table servers"));
    }
    spdlog::info("waiting for table servers: {}",
                 std::string(client.status().message()));
  }
  return absl::CancelledError("the worker is going down");
}

bool Worker::MayBeReplaced(const absl::Status& refused) const {
  return !options_.table_members.empty() &&
         ReasonOf(refused) == ErrorReason::kWrongTable;
}

absl::Status Worker::CheckTables(const TableInfo& table) const {
  if (table.version != version()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "checkpoint ", options_.checkpoint_dir, " is table version ", version(),
        ", its table servers serve ", table.version));
  }
  if (!(table.row_format == block_->row_format())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "rows of ", table.row_format.row_bytes(),
        " bytes from the table servers, of ", block_->row_format().row_bytes(),
        " bytes in checkpoint ", options_.checkpoint_dir));
  }
  return absl::OkStatus();
}

absl::Status Worker::AwaitPartitions() {
  while (!leaving()) {
    const absl::Status status =
        table_client_->WaitUntilComplete(absl::Now() + kPartitionsSlice);
    if (!absl::IsDeadlineExceeded(status)) return status;
    spdlog::info("waiting for partitions: {}", std::string(status.message()));
  }
  return absl::CancelledError("the worker is going down");
}

absl::Status Worker::WaitUntilReady(absl::Time deadline) {
  if (!connected_.WaitUntil(deadline)) {
    return absl::DeadlineExceededError("table servers are still waited for");
  }
  MutexLock lock(&mutex_);
  return connect_status_;
}

std::string Worker::NotReadyReason() const {
  const absl::Status status = engine_->CheckTakesSteps();
  if (status.ok() && leaving()) return "the worker is about to leave";
  return std::string(status.message());
}

// ---- the end ----

void Worker::TickUntilStopped() {
  bool failed = false;
  while (!stopping_.WaitUntil(absl::Now() + kTickPeriod)) {
    engine_->ExpireSteps();
    ObserveTables();
    const absl::Status block = engine_->ObserveBlock();
    if (!block.ok() && !failed) {
      spdlog::error("no longer ready: {}", block.ToString());
      failed = true;
    }
    SetServing();
  }
}

void Worker::ObserveTables() {
  if (!connected_.HasBeenNotified() || row_source_ == nullptr) return;
  const absl::Status covered = table_client_->CheckComplete();
  metrics_.tables_covered().Set(covered.ok() ? 1 : 0);
  const bool before = tables_watch_.reliable();
  tables_watch_.Observe(covered.ok(), Clock::Steady().Now());
  if (tables_watch_.reliable()) {
    if (!before) spdlog::info("ready again: every partition has a server");
    return engine_->SetTables(absl::OkStatus());
  }
  if (covered.ok()) return;  // the last that was said holds a moment longer
  if (before) spdlog::warn("not ready: {}", std::string(covered.message()));
  engine_->SetTables(covered);
}

// Whoever tells looks again: what is told last is how it is.
void Worker::SetServing() {
  const auto serves = [this] { return !leaving() && engine_->ready(); };
  bool told = false;
  do {
    told = serves();
    rpc_server_->SetServing(told);
  } while (told != serves());
}

void Worker::StopConnecting() {
  leaving_.Notify();
  if (connect_thread_.joinable()) connect_thread_.join();
}

void Worker::Drain(absl::Time deadline) {
  StopConnecting();
  SetServing();
  if (engine_->ready()) {
    spdlog::info("draining: serving on for {} while callers leave",
                 absl::FormatDuration(options_.drain_grace));
    absl::SleepFor(std::min(options_.drain_grace, deadline - absl::Now()));
  }
  service_->Drain();
  rpc_server_->Shutdown(deadline);
}

}  // namespace engram
