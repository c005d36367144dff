#include "table_server/service/watch_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/wire/error_detail.h"
#include "table_server/service/messages.h"

namespace engram {
namespace {

using PartitionChanges = google::protobuf::RepeatedPtrField<
    v1::WatchPartitionsResponse::PartitionChange>;

// Grouped by layer, layers in order of first appearance.
void Fill(const std::vector<PartitionRef>& partitions, PartitionChanges& out) {
  for (const PartitionRef& ref : partitions) {
    v1::WatchPartitionsResponse::PartitionChange* change = nullptr;
    for (auto& candidate : out) {
      if (candidate.layer_id() == ToInt(ref.layer)) change = &candidate;
    }
    if (change == nullptr) {
      change = out.Add();
      change->set_layer_id(ToInt(ref.layer));
    }
    change->add_partitions(ToInt(ref.partition));
  }
}

}  // namespace

void WatchStream::Await(const CallSource& source) {
  std::shared_ptr<WatchStream> stream(new WatchStream(source));
  source.rpc->RequestWatchPartitions(stream->context(), stream->request(),
                                     stream->writer(), source.queue,
                                     source.queue, stream->Arm(stream));
}

WatchStream::WatchStream(const CallSource& source)
    : WriteStream(*source.loop), source_(source), service_(*source.service) {}

void WatchStream::Begin() {
  Await(source_);
  if (!service_.watchers.Add(shared_from_this())) {
    return End(ToGrpcStatus<grpc::Status>(WithRetryAfter(
        MakeError(ErrorReason::kOverloaded,
                  absl::StrCat("the limit of ", service_.watchers.limit(),
                               " watchers is reached")),
        service_.limits.retry_after)));
  }
  service_.partitions.AddListener(shared_from_this());
  // After Add: a drain that began meanwhile stops what it finds there.
  if (!service_.accepting.load()) Stop();
  Advance();
}

void WatchStream::Stop() {
  End(ToGrpcStatus<grpc::Status>(service_.DrainingError()),
      /*tell_first=*/true);
}

void WatchStream::OnEnded(const grpc::Status& status) {
  service_.partitions.RemoveListener(this);
  service_.watchers.Remove(this);
  service_.metrics.CallEnded(TableMethod::kWatchPartitions,
                             FromGrpcStatus(status).code());
}

bool WatchStream::MakeMessage(v1::WatchPartitionsResponse& message) {
  if (!has_snapshot_) {
    MakeSnapshot(message);
    return true;
  }
  const PartitionSet::Changes changes =
      service_.partitions.ChangesSince(position_);
  if (changes.empty() && changes.draining == told_draining_) return false;
  position_ = changes.position;
  told_draining_ = changes.draining;
  message.Clear();
  message.set_epoch(++epoch_);
  v1::WatchPartitionsResponse::Delta& delta = *message.mutable_delta();
  Fill(changes.added, *delta.mutable_added());
  Fill(changes.removed, *delta.mutable_removed());
  delta.set_draining(changes.draining);
  return true;
}

void WatchStream::MakeSnapshot(v1::WatchPartitionsResponse& message) {
  PartitionSet::Snapshot snapshot = service_.partitions.TakeSnapshot();
  has_snapshot_ = true;
  told_draining_ = snapshot.draining;
  position_ = snapshot.position;
  // Each later message covers at least one change, so that the snapshot after
  // a reconnect is never behind what was told before.
  epoch_ = snapshot.position + (snapshot.draining ? 1 : 0) + 1;
  message.set_epoch(epoch_);
  v1::WatchPartitionsResponse::Snapshot& out = *message.mutable_snapshot();
  out.set_version(service_.manifest.version());
  out.set_server_name(service_.server_name);
  out.set_instance_id(service_.instance_id);
  out.set_draining(snapshot.draining);
  *out.mutable_layers() = ToLayerPartitions(std::move(snapshot.layers));
}

}  // namespace engram
