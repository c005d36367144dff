#include "engram_client/rpc/server_connection.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/backoff.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

constexpr absl::Duration kAnswerTimeout = absl::Seconds(5);
constexpr BackoffOptions kReconnect = {.first = absl::Milliseconds(50),
                                       .longest = absl::Seconds(1)};

const TableInfo::Layer* FindLayer(const TableInfo& table, uint32_t layer_id,
                                  size_t* index) {
  for (size_t i = 0; i < table.layers.size(); ++i) {
    if (ToInt(table.layers[i].layer_id) != layer_id) continue;
    *index = i;
    return &table.layers[i];
  }
  return nullptr;
}

// `apply` is Set or Clear.
absl::Status ApplyChange(
    const TableInfo& table,
    const v1::WatchPartitionsResponse::PartitionChange& change,
    void (PartitionBitmap::*apply)(uint32_t),
    std::vector<PartitionBitmap>& held) {
  size_t i = 0;
  const auto* layer = FindLayer(table, change.layer_id(), &i);
  for (const uint32_t partition : change.partitions()) {
    if (layer == nullptr || partition >= layer->partition_count) {
      return absl::InvalidArgumentError(
          absl::StrCat("partition ", partition, " of layer ", change.layer_id(),
                       ", which the table does not have"));
    }
    (held[i].*apply)(partition);
  }
  return absl::OkStatus();
}

}  // namespace

ServerConnection::ServerConnection(ServerIndex index, uint64_t generation,
                                   std::string address, Environment environment)
    : index_(index),
      generation_(generation),
      address_(std::move(address)),
      environment_(std::move(environment)) {}

void ServerConnection::Start() { Attempt(); }

void ServerConnection::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  environment_.timers->Cancel(retry_timer_);
  environment_.timers->Cancel(snapshot_timer_);
}

bool ServerConnection::answered() const {
  MutexLock lock(&mutex_);
  return answered_;
}

TableClient::ServerState ServerConnection::state() const {
  MutexLock lock(&mutex_);
  TableClient::ServerState state;
  state.address = address_;
  state.name = server_.server_name();
  state.connected = has_snapshot_;
  state.draining = draining_;
  for (const PartitionBitmap& layer : held_) {
    state.partitions_held += layer.Count();
  }
  state.error = error_;
  return state;
}

void ServerConnection::Attempt() {
  {
    MutexLock lock(&mutex_);
    if (stopped_) return;
  }
  if (const TransportSlots::Use transport = Transport()) {
    transport->GetTable(absl::Now() + kAnswerTimeout,
                        [this](absl::StatusOr<v1::GetTableResponse> response) {
                          OnTable(std::move(response));
                        });
  }
}

void ServerConnection::OnTable(absl::StatusOr<v1::GetTableResponse> response) {
  const absl::Status status =
      response.ok() ? environment_.identity->Admit(index_, *response)
                    : response.status();
  {
    MutexLock lock(&mutex_);
    answered_ = true;
    if (status.ok()) server_ = *std::move(response);
  }
  environment_.on_answer();
  if (status.ok()) {
    if (const TransportSlots::Use transport = Transport()) transport->WarmUp();
    StartWatch();
  } else {
    TryAgainLater(status);
  }
}

void ServerConnection::StartWatch() {
  uint64_t sequence = 0;
  {
    MutexLock lock(&mutex_);
    if (stopped_) return;
    sequence = ++watch_sequence_;
    broken_ = absl::OkStatus();
    snapshot_timer_ = environment_.timers->Schedule(
        absl::Now() + kAnswerTimeout, [self = shared_from_this(), sequence] {
          self->Break(sequence, absl::DeadlineExceededError(absl::StrCat(
                                    "no snapshot of partitions in ",
                                    absl::FormatDuration(kAnswerTimeout))));
        });
  }
  std::shared_ptr<TransportCall> watch;
  if (const TransportSlots::Use transport = Transport()) {
    watch = transport->WatchPartitions(
        [this, sequence](const v1::WatchPartitionsResponse& message) {
          OnMessage(sequence, message);
        },
        [this](absl::Status status) { OnWatchEnd(std::move(status)); });
  } else {
    return;
  }
  bool cancel = false;
  {
    MutexLock lock(&mutex_);
    // It may have ended already, and then the next may have begun.
    if (sequence == watch_sequence_) {
      watch_ = watch;
      cancel = !broken_.ok();
    }
    cancel = cancel || stopped_;
  }
  if (cancel) watch->Cancel();
}

void ServerConnection::OnMessage(uint64_t sequence,
                                 const v1::WatchPartitionsResponse& message) {
  ServerRoute route;
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    if (stopped_ || !broken_.ok()) return;
    const bool first = !has_snapshot_;
    status = Apply(message);
    if (status.ok()) {
      route.name = server_.server_name();
      route.address = address_;
      route.generation = generation_;
      route.draining = draining_;
      route.max_rows_per_call = server_.max_rows_per_gather();
      route.held = held_;
      if (first && !draining_)
        spdlog::info("table server {} at {}: connected", route.name, address_);
    }
  }
  if (!status.ok()) return Break(sequence, std::move(status));
  environment_.routing->Announce(index_, std::move(route));
}

absl::Status ServerConnection::Apply(
    const v1::WatchPartitionsResponse& message) {
  if (message.has_snapshot()) {
    ENGRAM_RETURN_IF_ERROR(ApplySnapshot(message.snapshot()));
  } else if (!has_snapshot_) {
    return absl::InternalError("changes of partitions before a snapshot");
  } else if (message.epoch() != epoch_ + 1) {
    return absl::InternalError(absl::StrCat(
        "epoch ", message.epoch(), " after ", epoch_, ": a change was lost"));
  } else if (message.has_delta()) {
    ENGRAM_RETURN_IF_ERROR(ApplyDelta(message.delta()));
  }
  epoch_ = message.epoch();
  return absl::OkStatus();
}

absl::Status ServerConnection::ApplySnapshot(
    const v1::WatchPartitionsResponse::Snapshot& snapshot) {
  if (snapshot.version() != server_.version() ||
      snapshot.server_name() != server_.server_name() ||
      snapshot.instance_id() != server_.instance_id()) {
    return absl::UnavailableError("the server was replaced by another");
  }
  const TableInfo& table = *environment_.identity->table();
  std::vector<PartitionBitmap> held;
  for (const TableInfo::Layer& layer : table.layers) {
    held.emplace_back(layer.partition_count);
  }
  for (const v1::LayerPartitions& partitions : snapshot.layers()) {
    size_t i = 0;
    const auto* layer = FindLayer(table, partitions.layer_id(), &i);
    if (layer == nullptr ||
        layer->partition_count != partitions.partition_count()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "partitions of layer ", partitions.layer_id(), " of ",
          partitions.partition_count(), ", which the table does not have"));
    }
    ENGRAM_ASSIGN_OR_RETURN(
        held[i], PartitionBitmap::FromBytes(partitions.bitmap(),
                                            partitions.partition_count()));
  }
  held_ = std::move(held);
  draining_ = snapshot.draining();
  has_snapshot_ = true;
  if (!draining_) {  // a server that is about to leave soon ends this again
    failures_ = 0;
    error_.clear();
  }
  environment_.timers->Cancel(snapshot_timer_);
  return absl::OkStatus();
}

absl::Status ServerConnection::ApplyDelta(
    const v1::WatchPartitionsResponse::Delta& delta) {
  const TableInfo& table = *environment_.identity->table();
  for (const auto& change : delta.added()) {
    ENGRAM_RETURN_IF_ERROR(
        ApplyChange(table, change, &PartitionBitmap::Set, held_));
  }
  for (const auto& change : delta.removed()) {
    ENGRAM_RETURN_IF_ERROR(
        ApplyChange(table, change, &PartitionBitmap::Clear, held_));
  }
  draining_ = draining_ || delta.draining();
  return absl::OkStatus();
}

void ServerConnection::Break(uint64_t sequence, absl::Status why) {
  std::shared_ptr<TransportCall> watch;
  {
    MutexLock lock(&mutex_);
    if (sequence != watch_sequence_ || !broken_.ok()) return;
    broken_ = std::move(why);
    watch = watch_;
  }
  if (watch != nullptr) watch->Cancel();
}

void ServerConnection::OnWatchEnd(absl::Status status) {
  {
    MutexLock lock(&mutex_);
    environment_.timers->Cancel(snapshot_timer_);
    watch_.reset();
    if (!broken_.ok()) status = broken_;
    if (status.ok()) status = absl::UnavailableError("the server ended it");
    ++watch_sequence_;  // what comes late is of no watch any more
    has_snapshot_ = false;
    draining_ = false;
    held_.clear();
  }
  environment_.routing->Withdraw(index_);
  environment_.identity->Release(index_);
  TryAgainLater(Annotate(status, "watching partitions"));
}

void ServerConnection::TryAgainLater(const absl::Status& why) {
  absl::Duration delay;
  {
    MutexLock lock(&mutex_);
    if (stopped_) return;
    delay = BackoffDelay(kReconnect, ++failures_);
    std::string error =
        why.ToString(absl::StatusToStringMode::kWithNoExtraData);
    if (error != error_) {
      spdlog::warn("table server {} at {}: {}", server_.server_name(), address_,
                   error);
    }
    error_ = std::move(error);
    retry_timer_ = environment_.timers->Schedule(
        absl::Now() + delay, [self = shared_from_this()] { self->Attempt(); });
  }
}

}  // namespace engram
