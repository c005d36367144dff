#ifndef ENGRAM_TABLE_SERVER_REBALANCE_EXCHANGE_ANSWERS_H_
#define ENGRAM_TABLE_SERVER_REBALANCE_EXCHANGE_ANSWERS_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/wire/layer_partitions.h"
#include "engram/v1/table.pb.h"
#include "table_server/membership/member_tracker.h"
#include "table_server/rebalance/hand_over.h"
#include "table_server/service/cluster_calls.h"

namespace engram {

// What peers and tools are answered, and what they told: the side of the
// rebalancer that calls reach, on threads that must not wait for it.
class ExchangeAnswers final : public ClusterCalls {
 public:
  // `hand_over` must outlive this. `wake`: something was told; called on the
  // thread of a call.
  ExchangeAnswers(const HandOver& hand_over,
                  std::vector<LayerPartitionCount> layers,
                  std::function<void()> wake);

  absl::Status Exchange(const v1::ExchangeRequest& request,
                        absl::Span<const PartitionRef> to_free,
                        v1::ExchangeResponse& response) override;
  absl::Status Leave(const v1::LeaveRequest& request) override;

  // What every answer says from now on, acknowledgements apart.
  void Publish(v1::ExchangeResponse state);
  // The process is about to end: from now on nobody is told to rely on it.
  void AnnounceExit();
  // What was told since the last call and is not in what is published.
  std::vector<MemberDeparture> TakeDepartures();
  bool leave_asked() const;
  // Whether one who asked has a view.
  bool peer_has_view() const;

 private:
  // Of `told`, what is not in `state`, for TakeDepartures.
  void TakeNews(std::vector<MemberDeparture> told,
                const v1::ExchangeResponse& state);

  const HandOver& hand_over_;
  const std::vector<LayerPartitionCount> layers_;
  const std::function<void()> wake_;
  mutable Mutex mutex_;
  std::shared_ptr<const v1::ExchangeResponse> state_ ABSL_GUARDED_BY(mutex_);
  std::vector<MemberDeparture> departures_ ABSL_GUARDED_BY(mutex_);
  bool exiting_ ABSL_GUARDED_BY(mutex_) = false;
  bool leave_asked_ ABSL_GUARDED_BY(mutex_) = false;
  bool peer_has_view_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_REBALANCE_EXCHANGE_ANSWERS_H_
