#include "engram_client/rpc/gather_lane.h"

#include <utility>

#include "engram_client/rpc/lane_call.h"

namespace engram {

// Keeps neither the gather nor its stream.
class GatherLane::Handle final : public TransportCall {
 public:
  Handle(std::weak_ptr<LaneStream> stream, std::weak_ptr<LaneCall> call)
      : stream_(std::move(stream)), call_(std::move(call)) {}

  void Cancel() override {
    const std::shared_ptr<LaneStream> stream = stream_.lock();
    const std::shared_ptr<LaneCall> call = call_.lock();
    if (stream != nullptr && call != nullptr) stream->Cancel(call);
  }

 private:
  const std::weak_ptr<LaneStream> stream_;
  const std::weak_ptr<LaneCall> call_;
};

GatherLane::GatherLane(std::shared_ptr<grpc::Channel> channel, QueueLoop& loop)
    : channel_(std::move(channel)), loop_(loop) {}

GatherLane::~GatherLane() {
  std::shared_ptr<LaneStream> stream;
  {
    MutexLock lock(&mutex_);
    stream = std::move(stream_);
  }
  if (stream != nullptr) stream->Close();
  stream.reset();
  streams_.WaitForNone();
}

std::shared_ptr<TransportCall> GatherLane::Gather(
    const TableTransport::GatherRequest& request, std::shared_ptr<RowSink> sink,
    TableTransport::StatusDone done) {
  auto call = std::make_shared<LaneCall>(request, std::move(sink),
                                         std::move(done), &outstanding_bytes_);
  std::shared_ptr<LaneStream> stream = Stream(nullptr);
  while (!stream->Add(call)) stream = Stream(stream);
  return std::make_shared<Handle>(stream, call);
}

void GatherLane::WarmUp() {
  std::shared_ptr<LaneStream> stream = Stream(nullptr);
  if (!stream->Open()) Stream(stream)->Open();
}

std::shared_ptr<LaneStream> GatherLane::Stream(
    const std::shared_ptr<LaneStream>& closed) {
  MutexLock lock(&mutex_);
  if (stream_ == nullptr || stream_ == closed) {
    // The caller has its own backoff; the channel's would come on top.
    grpc::experimental::ChannelResetConnectionBackoff(channel_.get());
    stream_ = std::make_shared<LaneStream>(streams_.Take(), channel_, loop_,
                                           max_in_flight_);
  }
  return stream_;
}

}  // namespace engram
