#include "table_server/service/table_service.h"

#include <algorithm>

#include "core/model/config.h"
#include "core/rpc/channel.h"
#include "core/rpc/queue_calls.h"
#include "core/wire/error_detail.h"
#include "table_server/service/cluster_answers.h"
#include "table_server/service/fetch_stream.h"
#include "table_server/service/gather_stream.h"
#include "table_server/service/heat_stream.h"
#include "table_server/service/unary_gather.h"
#include "table_server/service/watch_stream.h"

namespace engram {
namespace {

// Unary calls of one queue that may arrive before a thread looks.
constexpr int kAwaitedCalls = 16;
// A stream that arrives when none is awaited goes to the thread of another
// queue, away from its connection.
constexpr int kAwaitedStreams = 8;

constexpr uint64_t kMessageSlackBytes = 64 << 10;  // of what is not rows

// The reply of a unary gather has to fit into one message.
uint64_t MaxRows(const ServiceLimits& limits, const RowFormat& format) {
  return std::clamp<uint64_t>(
      (kMaxMessageBytes - kMessageSlackBytes) / format.row_bytes(), 1,
      limits.max_rows_per_gather);
}

// Whole rows, at least one.
size_t PieceRowsBytes(const ServiceLimits& limits, const RowFormat& format) {
  const size_t row_bytes = format.row_bytes();
  return std::max<size_t>(1, limits.piece_bytes / row_bytes) * row_bytes;
}

// One caller's stream must not take the slots of all others.
ServiceLimits WithFairStreams(ServiceLimits limits) {
  limits.max_gathers_in_flight_per_stream =
      std::min(limits.max_gathers_in_flight_per_stream,
               std::max<uint64_t>(1, limits.max_gathers_in_flight / 4));
  return limits;
}

}  // namespace

TableService::TableService(const Manifest& manifest, PartitionSet& partitions,
                           const RowTier& tier, TableMetrics& metrics,
                           Options options)
    : context_{.server_name = options.server_name,
               .instance_id = options.instance_id,
               .limits = WithFairStreams(options.limits),
               .clock = *options.clock,
               .manifest = manifest,
               .partitions = partitions,
               .cluster = options.cluster,
               .heat = heat_,
               .gatherer = Gatherer(
                   manifest, partitions, tier,
                   {.server_name = options.server_name,
                    .max_rows = MaxRows(options.limits, manifest.row_format()),
                    .retry_after = options.limits.retry_after,
                    .heat = &heat_}),
               .partition_reader = PartitionReader(
                   manifest, partitions, tier,
                   {.server_name = options.server_name,
                    .retry_after = options.limits.retry_fetch_after}),
               .admission = Admission(
                   {.max_gathers = options.limits.max_gathers_in_flight,
                    .max_bytes =
                        std::max<uint64_t>(options.limits.max_bytes_in_flight,
                                           2 * uint64_t{kMaxMessageBytes}),
                    .small_bytes = options.limits.small_bytes,
                    .retry_after = options.limits.retry_after}),
               .metrics = metrics,
               .buffers = ReplyBuffers(
                   {.rows_bytes =
                        PieceRowsBytes(options.limits, manifest.row_format()),
                    .max_pooled_bytes = options.limits.pooled_reply_bytes}),
               .streams = LiveSet(options.limits.max_streams),
               .watchers = LiveSet(options.limits.max_watchers),
               .fetches = LiveSet(options.limits.max_fetches),
               .heat_streams = LiveSet(options.limits.max_heat_streams)},
      sweeper_([this] {
        context_.streams.ExpireAll();
        context_.fetches.ExpireAll();
        context_.heat_streams.ExpireAll();
      }) {
  if (options.worker_threads > 0) {
    context_.workers.emplace(
        ThreadPool::Options{.thread_count = options.worker_threads});
    for (size_t i = 0; i < options.worker_threads; ++i) {
      context_.admission.AddThread();
    }
  }
}

int TableService::max_request_bytes() const {
  // Twice what the largest gather allowed takes; enough above it that a gather
  // somewhat too large is told so by TOO_LARGE.
  constexpr uint64_t kMinBytes = 4 << 20;
  const uint64_t bytes =
      2 * max_rows_per_gather() * sizeof(RowId) + kMessageSlackBytes;
  return static_cast<int>(
      std::clamp<uint64_t>(bytes, kMinBytes, kMaxMessageBytes));
}

void TableService::StopAccepting() {
  context_.accepting.store(false);
  context_.watchers.StopAll();
  context_.streams.StopAll();
  context_.fetches.StopAll();
  context_.heat_streams.StopAll();
}

bool TableService::Idle() const {
  return context_.admission.usage().gathers == 0 &&
         context_.streams.size() == 0 && context_.watchers.size() == 0 &&
         context_.fetches.size() == 0 && context_.heat_streams.size() == 0;
}

void TableService::UpdateGauges() const {
  const TableMetrics::Gauges& gauges = context_.metrics.gauges();
  const Admission::Usage usage = context_.admission.usage();
  const Admission::Options& bounds = context_.admission.options();
  const auto set = [](prometheus::Gauge* gauge, uint64_t value) {
    gauge->Set(static_cast<double>(value));
  };
  set(gauges.gathers_in_flight, usage.gathers);
  set(gauges.gathers_limit, bounds.max_gathers);
  set(gauges.bytes_in_flight, usage.bytes);
  set(gauges.bytes_limit, bounds.max_bytes);
  set(gauges.gathers_waiting,
      static_cast<uint64_t>(context_.gathers_waiting.load()));
  const Admission::Usage large = context_.admission.large_usage();
  set(gauges.large_gathers_in_flight, large.gathers);
  set(gauges.large_gathers_limit, bounds.max_large_gathers());
  set(gauges.large_bytes_in_flight, large.bytes);
  set(gauges.large_bytes_limit, bounds.max_large_bytes());
  set(gauges.reply_buffer_bytes, context_.buffers.pooled_bytes());
  set(gauges.reply_buffer_limit, context_.buffers.max_pooled_bytes());
  set(gauges.streams, context_.streams.size());
  set(gauges.streams_limit, context_.streams.limit());
  set(gauges.watchers, context_.watchers.size());
  set(gauges.watchers_limit, context_.watchers.limit());
  set(gauges.fetches, context_.fetches.size());
  set(gauges.fetches_limit, context_.fetches.limit());
  const std::shared_ptr<HeatRecording> heat = heat_.current();
  set(gauges.heat_streams, context_.heat_streams.size());
  set(gauges.heat_streams_limit, context_.heat_streams.limit());
  set(gauges.heat_recording, heat != nullptr ? 1 : 0);
  set(gauges.heat_sampled_rows, heat != nullptr ? heat->sampled_rows() : 0);
  set(gauges.heat_sampled_rows_limit,
      heat != nullptr ? heat->max_sampled_rows() : 0);
  set(gauges.ready, ready_.load() ? 1 : 0);
  for (size_t i = 0; i < gauges.partitions_ready.size(); ++i) {
    set(gauges.partitions_ready[i], context_.partitions.held_count(i));
  }
}

grpc::Status TableService::Describe(v1::GetTableResponse& response) {
  const Manifest& manifest = context_.manifest;
  const RowFormat& format = manifest.row_format();
  response.set_version(manifest.version());
  response.set_server_name(context_.server_name);
  response.set_instance_id(context_.instance_id);
  response.set_config_json(ConfigToJson(manifest.config()));
  v1::RowFormat* out = response.mutable_row_format();
  out->set_code_dtype(format.code_dtype);
  out->set_scale_dtype(format.scale_dtype);
  out->set_width(format.width);
  out->set_block_size(format.block_size);
  out->set_row_bytes(static_cast<uint32_t>(format.row_bytes()));
  response.set_partition_rows(manifest.partition_rows());
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    v1::LayerInfo* layer = response.add_layers();
    layer->set_layer_id(ToInt(manifest.layers()[i].layer_id));
    layer->set_row_count(manifest.layers()[i].row_count);
    layer->set_partition_count(manifest.partition_count(i));
  }
  response.set_ready(ready_.load());
  response.set_max_rows_per_gather(max_rows_per_gather());
  response.set_max_gathers_in_flight_per_stream(
      context_.limits.max_gathers_in_flight_per_stream);
  return Counted(TableMethod::kGetTable, absl::OkStatus());
}

void TableService::Serve(QueueLoop& loop, grpc::ServerCompletionQueue& queue) {
  const CallSource source{this, &context_, &loop, &queue};
  if (!context_.workers.has_value()) context_.admission.AddThread();
  for (int i = 0; i < kAwaitedCalls; ++i) UnaryGather::Await(source);
  for (int i = 0; i < kAwaitedStreams; ++i) {
    engram::GatherStream::Await(source);
  }
  WatchStream::Await(source);
  FetchStream::Await(source);
  HeatStream::Await(source);
  ServeDescriptions(loop, queue);
}

// What is small and answered at once.
void TableService::ServeDescriptions(QueueLoop& loop,
                                     grpc::ServerCompletionQueue& queue) {
  UnaryCall<v1::GetTableRequest, v1::GetTableResponse>::Await(
      loop,
      {.ask =
           [this, &queue](auto* context, auto* request, auto* writer,
                          void* tag) {
             RequestGetTable(context, request, writer, &queue, &queue, tag);
           },
       .answer =
           [this](const v1::GetTableRequest&, v1::GetTableResponse& response) {
             return Describe(response);
           }});
  UnaryCall<v1::ExchangeRequest, v1::ExchangeResponse>::Await(
      loop,
      {.ask =
           [this, &queue](auto* context, auto* request, auto* writer,
                          void* tag) {
             RequestExchange(context, request, writer, &queue, &queue, tag);
           },
       .answer =
           [this](const v1::ExchangeRequest& request,
                  v1::ExchangeResponse& response) {
             return Counted(
                 TableMethod::kExchange,
                 AnswerExchange(context_, ready_.load(), request, response));
           }});
  UnaryCall<v1::LeaveRequest, v1::LeaveResponse>::Await(
      loop, {.ask =
                 [this, &queue](auto* context, auto* request, auto* writer,
                                void* tag) {
                   RequestLeave(context, request, writer, &queue, &queue, tag);
                 },
             .answer =
                 [this](const v1::LeaveRequest& request, v1::LeaveResponse&) {
                   return Counted(TableMethod::kLeave,
                                  AnswerLeave(context_, request));
                 }});
}

grpc::Status TableService::Counted(TableMethod method,
                                   const absl::Status& status) {
  context_.metrics.CallEnded(method, status.code());
  return ToGrpcStatus<grpc::Status>(status);
}

}  // namespace engram
