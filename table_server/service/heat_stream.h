#ifndef ENGRAM_TABLE_SERVER_SERVICE_HEAT_STREAM_H_
#define ENGRAM_TABLE_SERVER_SERVICE_HEAT_STREAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "core/rpc/queue_calls.h"
#include "engram/v1/table.pb.h"
#include "table_server/heat/heat_recording.h"
#include "table_server/service/call_source.h"
#include "table_server/service/live_set.h"
#include "table_server/service/service_context.h"
#include "table_server/service/stall_watch.h"

namespace engram {

// One RecordHeat: begins a recording, tells how far it is, ends it when its
// time is over and tells what was counted, a part at a time. The sweeper is
// its clock.
class HeatStream final
    : public WriteStream<v1::RecordHeatRequest, v1::RecordHeatResponse>,
      public Stoppable,
      public std::enable_shared_from_this<HeatStream> {
 public:
  // Asks gRPC for the next recording of `source`; that one asks for the next.
  static void Await(const CallSource& source);

  // Ends a recording; what is being told already is told to its end.
  void Stop() override;
  // Goes on where time has come for something.
  void Expire() override;

 private:
  explicit HeatStream(const CallSource& source);

  void Begin() override;
  bool MakeMessage(v1::RecordHeatResponse& message) override;
  void BeforeWrite(const v1::RecordHeatResponse& message) override;
  void OnEnded(const grpc::Status& status) override;

  absl::Status Start();
  // Of whoever makes the message.
  bool MakeProgress(v1::RecordHeatResponse& message);
  void MakeTotals(v1::RecordHeatResponse& message);
  bool MakePartitions(v1::RecordHeatResponse& message);
  bool MakeSample(v1::RecordHeatResponse& message);
  bool MakeHotRows(v1::RecordHeatResponse& message);

  const CallSource source_;
  ServiceContext& service_;

  // Set in Start. Nothing expires before.
  std::shared_ptr<HeatRecording> recording_;
  absl::Time began_at_;
  absl::Time ends_at_;
  std::atomic<bool> started_{false};
  std::atomic<bool> over_{false};             // what was counted is told
  absl::Duration took_;                       // once it is over
  std::atomic<int64_t> next_progress_ns_{0};  // Unix time
  StallWatch stall_;

  // Of whoever makes the message.
  bool told_totals_ = false;
  uint64_t last_hash_ = 0;
  size_t layer_index_ = 0;
  uint32_t first_partition_ = 0;
  size_t sample_part_ = 0;
  size_t hot_part_ = 0;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_HEAT_STREAM_H_
