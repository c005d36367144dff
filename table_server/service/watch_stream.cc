#include "table_server/service/watch_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/wire/error_detail.h"

namespace engram {
namespace {

// `added` grouped by layer, layers in order of first appearance.
void FillAdded(const std::vector<PartitionRef>& added,
               v1::WatchPartitionsResponse::Delta& delta) {
  for (const PartitionRef& ref : added) {
    v1::WatchPartitionsResponse::PartitionChange* change = nullptr;
    for (auto& candidate : *delta.mutable_added()) {
      if (candidate.layer_id() == ToInt(ref.layer)) change = &candidate;
    }
    if (change == nullptr) {
      change = delta.add_added();
      change->set_layer_id(ToInt(ref.layer));
    }
    change->add_partitions(ToInt(ref.partition));
  }
}

}  // namespace

WatchStream::Reactor* WatchStream::Start(ServiceContext& service) {
  std::shared_ptr<WatchStream> stream(new WatchStream(service));
  stream->self_ = stream;
  if (!service.watchers.Add(stream)) {
    stream->End(WithRetryAfter(
        MakeError(ErrorReason::kOverloaded,
                  absl::StrCat("the limit of ", service.watchers.limit(),
                               " watchers is reached")),
        service.limits.retry_after));
    return stream.get();
  }
  service.partitions.AddListener(stream);
  // After Add: a drain that began meanwhile stops what it finds there.
  if (!service.accepting.load()) stream->Stop();
  stream->Advance();
  return stream.get();
}

void WatchStream::Stop() {
  {
    MutexLock lock(&mutex_);
    if (ending_) return;
    ending_ = true;
    tell_first_ = true;
    final_status_ = service_.DrainingError();
  }
  Advance();
}

void WatchStream::OnCancel() {
  End(absl::CancelledError("the caller cancelled the watch"));
}

void WatchStream::End(const absl::Status& status) {
  {
    MutexLock lock(&mutex_);
    tell_first_ = false;
    if (ending_) return;
    ending_ = true;
    final_status_ = status;
  }
  Advance();
}

void WatchStream::OnWriteDone(bool ok) {
  {
    MutexLock lock(&mutex_);
    state_ = State::kIdle;
    if (!ok) tell_first_ = false;
    if (!ok && !ending_) {
      ending_ = true;
      final_status_ = absl::CancelledError("the stream broke");
    }
  }
  Advance();
}

void WatchStream::OnDone() {
  service_.partitions.RemoveListener(this);
  service_.watchers.Remove(this);
  absl::StatusCode code;
  {
    MutexLock lock(&mutex_);
    code = final_status_.code();
  }
  service_.metrics.CallEnded(TableMethod::kWatchPartitions, code);
  // Moved out first: destroying the member from within would destroy `this`
  // half way.
  const std::shared_ptr<WatchStream> self = std::move(self_);
}

void WatchStream::Advance() {
  absl::Status status;
  bool finish = false;
  {
    MutexLock lock(&mutex_);
    if (state_ != State::kIdle) return;
    if ((!ending_ || tell_first_) && MakeMessage()) {
      state_ = State::kWriting;
    } else if (ending_) {
      state_ = State::kFinished;
      finish = true;
      status = final_status_;
    } else {
      return;
    }
  }
  // Whoever set the state is the only one to start an operation until it is
  // done.
  if (finish) return Finish(ToGrpcStatus<grpc::Status>(status));
  StartWrite(&message_);
}

bool WatchStream::MakeMessage() {
  if (!has_snapshot_) {
    MakeSnapshot();
    return true;
  }
  const PartitionSet::Changes changes =
      service_.partitions.ChangesSince(position_);
  if (changes.added.empty() && changes.draining == told_draining_) return false;
  position_ = changes.position;
  told_draining_ = changes.draining;
  message_.Clear();
  message_.set_epoch(++epoch_);
  v1::WatchPartitionsResponse::Delta& delta = *message_.mutable_delta();
  FillAdded(changes.added, delta);
  delta.set_draining(changes.draining);
  return true;
}

void WatchStream::MakeSnapshot() {
  PartitionSet::Snapshot snapshot = service_.partitions.TakeSnapshot();
  has_snapshot_ = true;
  told_draining_ = snapshot.draining;
  position_ = snapshot.position;
  // Each later message covers at least one change, so that the snapshot after
  // a reconnect is never behind what was told before.
  epoch_ = snapshot.position + (snapshot.draining ? 1 : 0) + 1;
  message_.set_epoch(epoch_);
  v1::WatchPartitionsResponse::Snapshot& out = *message_.mutable_snapshot();
  out.set_version(service_.manifest.version());
  out.set_server_name(service_.server_name);
  out.set_instance_id(service_.instance_id);
  out.set_draining(snapshot.draining);
  for (PartitionSet::LayerBitmap& layer : snapshot.layers) {
    v1::LayerPartitions* entry = out.add_layers();
    entry->set_layer_id(ToInt(layer.layer));
    entry->set_partition_count(layer.partition_count);
    entry->set_bitmap(std::move(layer.bitmap));
  }
}

}  // namespace engram
