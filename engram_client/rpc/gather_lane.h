#ifndef ENGRAM_ENGRAM_CLIENT_RPC_GATHER_LANE_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_GATHER_LANE_H_

#include <grpcpp/channel.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "core/base/mutex.h"
#include "core/rpc/queue_loop.h"
#include "engram_client/rpc/lane_stream.h"
#include "engram_client/rpc/live_count.h"
#include "engram_client/rpc/table_transport.h"

namespace engram {

// Gathers over one channel, all on one stream: opened by the first gather, or
// before, and again by the next one after it has ended.
//
// Thread safety: all methods may be called concurrently. As a TableTransport,
// destroying it cancels its gathers and waits until all have told their end.
class GatherLane {
 public:
  // `loop` must outlive the lane.
  GatherLane(std::shared_ptr<grpc::Channel> channel, QueueLoop& loop);
  ~GatherLane();
  GatherLane(const GatherLane&) = delete;
  GatherLane& operator=(const GatherLane&) = delete;

  // As TableTransport::Gather.
  std::shared_ptr<TransportCall> Gather(
      const TableTransport::GatherRequest& request,
      std::shared_ptr<RowSink> sink, TableTransport::StatusDone done);

  // Opens the stream, if there is none, so that no gather has to wait for it.
  void WarmUp();

  // What the server allows on one stream; before it is known, the lane keeps to
  // its own limit.
  void LimitInFlight(size_t max_gathers) {
    max_in_flight_.store(
        std::clamp<size_t>(max_gathers, 1, LaneStream::kMaxInFlight));
  }

  // Of the replies of gathers that have not ended.
  uint64_t outstanding_bytes() const {
    return outstanding_bytes_.load(std::memory_order_relaxed);
  }

 private:
  class Handle;

  // The stream that takes gathers, another one than `closed`.
  std::shared_ptr<LaneStream> Stream(const std::shared_ptr<LaneStream>& closed);

  const std::shared_ptr<grpc::Channel> channel_;
  QueueLoop& loop_;
  std::atomic<uint64_t> outstanding_bytes_{0};
  std::atomic<size_t> max_in_flight_{LaneStream::kMaxInFlight};
  LiveCount streams_;

  Mutex mutex_;
  std::shared_ptr<LaneStream> stream_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_GATHER_LANE_H_
