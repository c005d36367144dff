#include "engram_client/rpc/fake_table_server.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/wire/error_detail.h"
#include "engram_client/rpc/call_set.h"

namespace engram {
namespace {

constexpr std::array kLayers = {LayerId{1}, LayerId{14}};

}  // namespace

v1::GetTableResponse FakeTable::Response(const std::string& server_name,
                                         uint64_t instance_id) const {
  v1::GetTableResponse response;
  response.set_version(version);
  response.set_server_name(server_name);
  response.set_instance_id(instance_id);
  response.set_config_json(R"({
    "vocab_size": 100, "dim": 32, "hc_mult": 2, "norm_eps": 1e-6,
    "engram_layer_ids": [1, 14], "engram_vocab_size": 100,
    "engram_max_ngram_size": 2, "engram_pad_id": 0,
    "engram_compressed_vocab_size": 50, "engram_n_heads": 1,
    "engram_head_dim": 32})");
  v1::RowFormat* format = response.mutable_row_format();
  format->set_code_dtype("F8_E4M3");
  format->set_scale_dtype("F8_E8M0");
  format->set_width(kWidth);
  format->set_block_size(kWidth);
  format->set_row_bytes(kRowBytes);
  response.set_partition_rows(partition_rows);
  for (const LayerId layer : kLayers) {
    v1::LayerInfo* info = response.add_layers();
    info->set_layer_id(ToInt(layer));
    info->set_row_count(row_count);
    info->set_partition_count(partition_count());
  }
  response.set_ready(true);
  response.set_max_rows_per_gather(100000);
  return response;
}

void FakeTable::WriteRow(LayerId layer, RowId row, std::byte* out) {
  uint32_t state = (row + 1) * 2654435761U ^ ToInt(layer) * 40503U;
  for (size_t i = 0; i < kRowBytes; ++i) {
    state = state * 1664525U + 1013904223U;
    out[i] = static_cast<std::byte>(state >> 24);
  }
}

// Whoever sets `finished` first ends the call.
struct FakeTableServer::Call final : TransportCall {
  void Cancel() override {
    auto self = weak_self.lock();
    if (self == nullptr) return;
    server->Post([self] {
      self->server->Finish(self, absl::CancelledError("cancelled"));
    });
  }

  FakeTableServer* server = nullptr;
  std::weak_ptr<Call> weak_self;
  bool is_gather = false;
  bool finished = false;  // used on the server's thread only
  std::function<void(absl::Status)> done;
};

class FakeTableServer::Transport final : public TableTransport {
 public:
  explicit Transport(FakeTableServer* server) : server_(server) {}
  ~Transport() override { calls_.CancelAllAndWait(); }

  std::shared_ptr<TransportCall> GetTable(absl::Time /*deadline*/,
                                          TableDone done) override {
    auto shared_done = std::make_shared<TableDone>(std::move(done));
    auto answer = std::make_shared<v1::GetTableResponse>();
    const CallPtr call = Open([=](const absl::Status& status) {
      status.ok() ? (*shared_done)(*answer) : (*shared_done)(status);
    });
    server_->Post([server = server_, call, answer] {
      absl::Status status;
      {
        MutexLock lock(&server->mutex_);
        if (!server->up_) status = absl::UnavailableError("connection refused");
        *answer = server->table_.Response(server->name_, server->instance_id_);
      }
      server->Finish(call, std::move(status));
    });
    return call;
  }

  std::shared_ptr<TransportCall> WatchPartitions(WatchEvent on_message,
                                                 StatusDone done) override {
    auto shared_done = std::make_shared<StatusDone>(std::move(done));
    const CallPtr call =
        Open([=](absl::Status status) { (*shared_done)(std::move(status)); });
    server_->Post([server = server_, call, on_message] {
      v1::WatchPartitionsResponse snapshot;
      bool up = false;
      {
        MutexLock lock(&server->mutex_);
        up = server->up_;
        snapshot = server->Snapshot();
        if (up) server->watchers_.emplace_back(call, on_message);
      }
      if (!up) {
        return server->Finish(call, absl::UnavailableError("refused"));
      }
      if (!call->finished) on_message(snapshot);
    });
    return call;
  }

  void WarmUp() override {
    MutexLock lock(&server_->mutex_);
    ++server_->warm_ups_;
  }

  std::shared_ptr<TransportCall> Gather(const GatherRequest& request,
                                        std::shared_ptr<RowSink> sink,
                                        StatusDone done) override {
    FakeTableServer::Gather gather;
    gather.version = std::string(request.version);
    gather.deadline = request.deadline;
    for (const RowRun& run : request.runs) {
      for (const RowId row : run.row_ids) {
        gather.rows.emplace_back(run.layer, row);
      }
    }
    ENGRAM_CHECK(request.reply_bytes ==
                 gather.rows.size() * FakeTable::kRowBytes);
    auto shared_done = std::make_shared<StatusDone>(std::move(done));
    const CallPtr call =
        Open([=](absl::Status status) { (*shared_done)(std::move(status)); });
    call->is_gather = true;
    auto answer = [server = server_, call, sink, gather = std::move(gather)] {
      server->Answer(call, gather, *sink);
    };
    bool swallow = false;
    {
      MutexLock lock(&server_->mutex_);
      ++server_->gathers_started_;
      ++server_->gathers_open_;
      swallow = server_->swallow_;
      if (swallow) server_->swallowed_.push_back(answer);
    }
    if (!swallow) server_->Post(std::move(answer));
    return call;
  }

 private:
  CallPtr Open(std::function<void(absl::Status)> done) {
    auto call = std::make_shared<Call>();
    call->server = server_;
    call->weak_self = call;
    call->done = [this, key = call.get(), done](absl::Status status) {
      done(std::move(status));
      calls_.Remove(key);
    };
    calls_.Add(call);
    return call;
  }

  FakeTableServer* const server_;
  CallSet calls_;
};

FakeTableServer::FakeTableServer(std::string name, FakeTable table,
                                 uint64_t instance_id)
    : name_(std::move(name)),
      table_(std::move(table)),
      instance_id_(instance_id) {}

FakeTableServer::~FakeTableServer() = default;

std::unique_ptr<TableTransport> FakeTableServer::Connect() {
  return std::make_unique<Transport>(this);
}

void FakeTableServer::Post(absl::AnyInvocable<void()> task) {
  ENGRAM_CHECK(thread_.TryAdd(std::move(task)));
}

void FakeTableServer::Finish(const CallPtr& call, absl::Status status) {
  if (call->finished) return;
  call->finished = true;
  {
    MutexLock lock(&mutex_);
    if (call->is_gather) {
      --gathers_open_;
      if (absl::IsCancelled(status)) ++gathers_cancelled_;
    }
    watchers_.erase(
        std::remove_if(watchers_.begin(), watchers_.end(),
                       [&](const auto& entry) { return entry.first == call; }),
        watchers_.end());
  }
  auto done = std::move(call->done);
  done(std::move(status));
}

absl::Status FakeTableServer::CheckHeld(const Gather& gather) const {
  MutexLock lock(&mutex_);
  if (!up_) return absl::UnavailableError("connection reset");
  if (gather.version != table_.version) {
    return MakeError(ErrorReason::kWrongTable, "another table");
  }
  std::set<PartitionRef> missing;
  for (const auto& [layer, row] : gather.rows) {
    const auto partition = static_cast<uint32_t>(row / table_.partition_rows);
    if (held_.count({ToInt(layer), partition}) > 0) continue;
    missing.insert({layer, PartitionId{partition}});
  }
  if (missing.empty()) return absl::OkStatus();
  return PartitionNotHereError(
      name_, std::vector<PartitionRef>(missing.begin(), missing.end()),
      {{kLayers[0], table_.partition_count()},
       {kLayers[1], table_.partition_count()}});
}

void FakeTableServer::Answer(const CallPtr& call, const Gather& gather,
                             RowSink& sink) {
  if (call->finished) return;
  GatherHook hook;
  {
    MutexLock lock(&mutex_);
    hook = hook_;
  }
  absl::Status status = hook ? hook(gather) : absl::OkStatus();
  if (status.ok()) status = CheckHeld(gather);
  if (status.ok()) {
    std::vector<std::byte> rows(gather.rows.size() * FakeTable::kRowBytes);
    for (size_t i = 0; i < gather.rows.size(); ++i) {
      FakeTable::WriteRow(gather.rows[i].first, gather.rows[i].second,
                          rows.data() + i * FakeTable::kRowBytes);
    }
    // Two pieces that cut a row, the second one first.
    const absl::Span<const std::byte> all(rows);
    sink.Write(all.size() / 2, all.subspan(all.size() / 2));
    sink.Write(0, all.subspan(0, all.size() / 2));
  }
  Finish(call, std::move(status));
}

v1::WatchPartitionsResponse FakeTableServer::Snapshot() const {
  v1::WatchPartitionsResponse message;
  message.set_epoch(epoch_);
  auto* snapshot = message.mutable_snapshot();
  snapshot->set_version(table_.version);
  snapshot->set_server_name(name_);
  snapshot->set_instance_id(instance_id_);
  snapshot->set_draining(draining_);
  for (const LayerId layer : kLayers) {
    std::string bitmap((table_.partition_count() + 7) / 8, '\0');
    for (uint32_t p = 0; p < table_.partition_count(); ++p) {
      if (held_.count({ToInt(layer), p}) == 0) continue;
      bitmap[p / 8] = static_cast<char>(bitmap[p / 8] | 1 << p % 8);
    }
    v1::LayerPartitions* partitions = snapshot->add_layers();
    partitions->set_layer_id(ToInt(layer));
    partitions->set_partition_count(table_.partition_count());
    partitions->set_bitmap(bitmap);
  }
  return message;
}

void FakeTableServer::Change(v1::WatchPartitionsResponse delta, bool told) {
  if (!told) return;
  delta.set_epoch(++epoch_);
  for (const auto& [call, on_message] : watchers_) {
    Post([call = call, on_message = on_message, delta] {
      if (!call->finished) on_message(delta);
    });
  }
}

void FakeTableServer::HoldAll() {
  std::vector<uint32_t> all;
  for (uint32_t p = 0; p < table_.partition_count(); ++p) all.push_back(p);
  for (const LayerId layer : kLayers) Add(layer, all);
}

void FakeTableServer::Add(LayerId layer, std::vector<uint32_t> partitions) {
  v1::WatchPartitionsResponse message;
  auto* change = message.mutable_delta()->add_added();
  change->set_layer_id(ToInt(layer));
  MutexLock lock(&mutex_);
  for (const uint32_t p : partitions) {
    change->add_partitions(p);
    held_.insert({ToInt(layer), p});
  }
  Change(std::move(message), true);
}

void FakeTableServer::Remove(LayerId layer, std::vector<uint32_t> partitions,
                             bool told) {
  v1::WatchPartitionsResponse message;
  auto* change = message.mutable_delta()->add_removed();
  change->set_layer_id(ToInt(layer));
  MutexLock lock(&mutex_);
  for (const uint32_t p : partitions) {
    change->add_partitions(p);
    held_.erase({ToInt(layer), p});
  }
  Change(std::move(message), told);
}

void FakeTableServer::Drain() {
  v1::WatchPartitionsResponse message;
  message.mutable_delta()->set_draining(true);
  MutexLock lock(&mutex_);
  draining_ = true;
  Change(std::move(message), true);
}

void FakeTableServer::SendToWatchers(
    const v1::WatchPartitionsResponse& message) {
  MutexLock lock(&mutex_);
  for (const auto& [call, on_message] : watchers_) {
    Post([call = call, on_message = on_message, message] {
      if (!call->finished) on_message(message);
    });
  }
}

void FakeTableServer::SetUp(bool up) {
  std::vector<CallPtr> ended;
  {
    MutexLock lock(&mutex_);
    up_ = up;
    if (up) return;
    for (const auto& [call, on_message] : watchers_) ended.push_back(call);
  }
  for (const CallPtr& call : ended) {
    Post([this, call] {
      Finish(call, absl::UnavailableError("connection reset"));
    });
  }
}

void FakeTableServer::Restart(uint64_t instance_id) {
  SetUp(false);
  MutexLock lock(&mutex_);
  instance_id_ = instance_id;
  epoch_ = 1;
  draining_ = false;
  up_ = true;
}

void FakeTableServer::OnGather(GatherHook hook) {
  MutexLock lock(&mutex_);
  hook_ = std::move(hook);
}

void FakeTableServer::SwallowGathers(bool swallow) {
  MutexLock lock(&mutex_);
  swallow_ = swallow;
}

void FakeTableServer::ReleaseSwallowed() {
  std::vector<std::function<void()>> released;
  {
    MutexLock lock(&mutex_);
    released.swap(swallowed_);
  }
  for (auto& answer : released) Post(std::move(answer));
}

uint64_t FakeTableServer::gathers_started() const {
  MutexLock lock(&mutex_);
  return gathers_started_;
}

uint64_t FakeTableServer::gathers_cancelled() const {
  MutexLock lock(&mutex_);
  return gathers_cancelled_;
}

uint64_t FakeTableServer::warm_ups() const {
  MutexLock lock(&mutex_);
  return warm_ups_;
}

uint64_t FakeTableServer::gathers_open() const {
  MutexLock lock(&mutex_);
  return gathers_open_;
}

}  // namespace engram
