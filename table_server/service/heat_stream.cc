#include "table_server/service/heat_stream.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"
#include "core/wire/heat_hash.h"
#include "table_server/gather/request_errors.h"

namespace engram {
namespace {

constexpr uint64_t kMaxDurationMs = 3'600'000;
constexpr uint64_t kMaxSampledRows = 1 << 20;
constexpr uint64_t kDefaultSampledRows = 1 << 16;
constexpr uint32_t kPartitionsPerMessage = 1 << 16;
constexpr absl::Duration kProgressInterval = absl::Seconds(1);
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

absl::Status OutOfBounds(absl::string_view what, uint64_t value, uint64_t least,
                         uint64_t most) {
  return absl::InvalidArgumentError(absl::StrCat(
      what, " is ", value, ", the limits are ", least, " and ", most));
}

absl::StatusOr<uint64_t> SampledRowsOf(const v1::RecordHeatRequest& request) {
  const uint64_t rows = request.max_sampled_rows();
  if (rows == 0) return kDefaultSampledRows;
  if (rows < HeatRecording::kParts || rows > kMaxSampledRows) {
    return OutOfBounds("max_sampled_rows", rows, HeatRecording::kParts,
                       kMaxSampledRows);
  }
  return rows;
}

// By layers, in order of first appearance.
void Fill(const std::vector<RowLookups>& rows,
          v1::RecordHeatResponse::RowCounts& out) {
  for (const RowLookups& row : rows) {
    const uint32_t id = ToInt(LayerOfHeatKey(row.key));
    auto* const layers = out.mutable_layers();
    auto layer = std::find_if(
        layers->begin(), layers->end(),
        [&](const auto& candidate) { return candidate.layer_id() == id; });
    if (layer == layers->end()) {
      out.add_layers()->set_layer_id(id);
      layer = std::prev(layers->end());
    }
    layer->add_row_ids(RowOfHeatKey(row.key));
    layer->add_lookups(row.lookups);
  }
}

}  // namespace

void HeatStream::Await(const CallSource& source) {
  std::shared_ptr<HeatStream> stream(new HeatStream(source));
  source.rpc->RequestRecordHeat(stream->context(), stream->request(),
                                stream->writer(), source.queue, source.queue,
                                stream->Arm(stream));
}

HeatStream::HeatStream(const CallSource& source)
    : WriteStream(*source.loop),
      source_(source),
      service_(*source.service),
      stall_(service_.clock.Now()) {}

void HeatStream::Begin() {
  Await(source_);
  const absl::Status status = Start();
  if (!status.ok()) return End(ToGrpcStatus<grpc::Status>(status));
  Advance();
}

absl::Status HeatStream::Start() {
  ENGRAM_RETURN_IF_ERROR(CheckVersion(request()->version(), service_.manifest));
  const uint64_t duration_ms = request()->duration_ms();
  if (duration_ms == 0 || duration_ms > kMaxDurationMs) {
    return OutOfBounds("duration_ms", duration_ms, 1, kMaxDurationMs);
  }
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t rows, SampledRowsOf(*request()));
  if (!service_.heat_streams.Add(shared_from_this())) {
    return WithRetryAfter(
        MakeError(ErrorReason::kOverloaded,
                  absl::StrCat("the limit of ", service_.heat_streams.limit(),
                               " recordings, with those that are told, is "
                               "reached")),
        kRetryAfter);
  }
  // After Add: a drain that began meanwhile stops what it finds there.
  if (!service_.accepting.load()) return service_.DrainingError();
  recording_ = std::make_shared<HeatRecording>(service_.manifest, rows);
  began_at_ = service_.clock.Now();
  stall_.Moved(began_at_);
  ends_at_ = began_at_ + absl::Milliseconds(duration_ms);
  if (!service_.heat.Start(recording_)) {
    return WithRetryAfter(
        MakeError(ErrorReason::kOverloaded,
                  "heat is being recorded, one recording at a time"),
        kRetryAfter);
  }
  started_.store(true);
  return absl::OkStatus();
}

void HeatStream::Stop() {
  End(ToGrpcStatus<grpc::Status>(service_.DrainingError()),
      /*tell_first=*/true);
}

void HeatStream::Expire() {
  if (!started_.load()) return;
  const absl::Time now = service_.clock.Now();
  // Before that there is something to tell every second.
  if (stall_.IsStalled(now, service_.limits.stall)) context()->TryCancel();
  if (over_.load()) return;
  if (now >= ends_at_) {
    service_.heat.Stop(recording_.get());
    took_ = now - began_at_;
    stall_.Moved(now);
    over_.store(true);
    return End(grpc::Status::OK, /*tell_first=*/true);
  }
  if (absl::ToUnixNanos(now) >= next_progress_ns_.load()) Advance();
}

void HeatStream::BeforeWrite(const v1::RecordHeatResponse&) {
  stall_.Moved(service_.clock.Now());
}

void HeatStream::OnEnded(const grpc::Status& status) {
  service_.heat.Stop(recording_.get());
  service_.heat_streams.Remove(this);
  service_.metrics.CallEnded(TableMethod::kRecordHeat,
                             FromGrpcStatus(status).code());
}

bool HeatStream::MakeMessage(v1::RecordHeatResponse& message) {
  if (!started_.load()) return false;
  if (!over_.load()) return MakeProgress(message);
  message.Clear();
  if (!std::exchange(told_totals_, true)) {
    MakeTotals(message);
    return true;
  }
  return MakePartitions(message) || MakeSample(message) || MakeHotRows(message);
}

bool HeatStream::MakeProgress(v1::RecordHeatResponse& message) {
  const absl::Time now = service_.clock.Now();
  if (absl::ToUnixNanos(now) < next_progress_ns_.load()) return false;
  next_progress_ns_.store(absl::ToUnixNanos(now + kProgressInterval));
  v1::RecordHeatResponse::Progress& progress = *message.mutable_progress();
  progress.set_elapsed_ms(absl::ToInt64Milliseconds(now - began_at_));
  progress.set_lookups(recording_->lookups());
  progress.set_sampled_rows(recording_->sampled_rows());
  return true;
}

void HeatStream::MakeTotals(v1::RecordHeatResponse& message) {
  last_hash_ = recording_->last_hash();
  v1::RecordHeatResponse::Totals& totals = *message.mutable_totals();
  totals.set_version(service_.manifest.version());
  totals.set_server_name(service_.server_name);
  totals.set_instance_id(service_.instance_id);
  totals.set_elapsed_ms(absl::ToInt64Milliseconds(took_));
  totals.set_last_hash(last_hash_);
  totals.set_lookups_per_hit(HeatRecording::kLookupsPerHit);
  totals.set_hot_missed(recording_->hot_missed());
}

bool HeatStream::MakePartitions(v1::RecordHeatResponse& message) {
  const Manifest& manifest = service_.manifest;
  if (layer_index_ == manifest.layers().size()) return false;
  const uint32_t count = manifest.partition_count(layer_index_);
  const uint32_t end =
      std::min(count - first_partition_, kPartitionsPerMessage) +
      first_partition_;
  v1::RecordHeatResponse::PartitionLookups& out = *message.mutable_partitions();
  out.set_layer_id(ToInt(manifest.layers()[layer_index_].layer_id));
  out.set_first_partition(first_partition_);
  for (uint32_t partition = first_partition_; partition < end; ++partition) {
    out.add_lookups(recording_->LookupsOf(layer_index_, partition));
  }
  first_partition_ = end;
  if (end == count) {
    ++layer_index_;
    first_partition_ = 0;
  }
  return true;
}

// Parts in which there is nothing are left out.
bool HeatStream::MakeSample(v1::RecordHeatResponse& message) {
  while (sample_part_ < HeatRecording::kParts) {
    const std::vector<RowLookups> rows =
        recording_->SampleOf(sample_part_++, last_hash_);
    if (rows.empty()) continue;
    Fill(rows, *message.mutable_sample());
    return true;
  }
  return false;
}

bool HeatStream::MakeHotRows(v1::RecordHeatResponse& message) {
  while (hot_part_ < HeatRecording::kParts) {
    const std::vector<RowLookups> rows = recording_->HotRowsOf(hot_part_++);
    if (rows.empty()) continue;
    Fill(rows, *message.mutable_hot());
    return true;
  }
  return false;
}

}  // namespace engram
