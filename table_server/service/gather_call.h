#ifndef ENGRAM_TABLE_SERVER_SERVICE_GATHER_CALL_H_
#define ENGRAM_TABLE_SERVER_SERVICE_GATHER_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engram/v1/table.pb.h"
#include "table_server/service/admission.h"
#include "table_server/service/service_context.h"

namespace engram {

// One unary Gather: admitted on gRPC's thread, gathered on the worker pool.
// Deletes itself when the call is done.
class GatherCall final : public grpc::ServerUnaryReactor {
 public:
  // REQUIRES: `context` outlives the call.
  static grpc::ServerUnaryReactor* Start(ServiceContext& service,
                                         grpc::CallbackServerContext& context,
                                         const v1::GatherRequest& request,
                                         v1::GatherResponse& response);

  void OnCancel() override { cancelled_.store(true); }
  void OnDone() override;

 private:
  GatherCall(ServiceContext& service, absl::Time deadline,
             const v1::GatherRequest& request, v1::GatherResponse& response);

  absl::Status Admit();
  absl::Status Run();
  void End(const absl::Status& status);

  ServiceContext& service_;
  const absl::Time arrived_;
  const absl::Time deadline_;
  const v1::GatherRequest& request_;
  v1::GatherResponse& response_;
  std::atomic<bool> cancelled_{false};
  Admission::Ticket ticket_;  // held until the reply has left
  absl::StatusCode code_ = absl::StatusCode::kUnknown;
  uint64_t reply_bytes_ = 0;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_GATHER_CALL_H_
