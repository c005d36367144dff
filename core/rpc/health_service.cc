#include "core/rpc/health_service.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/rpc/queue_calls.h"

namespace engram {
namespace {

// Longer names are refused: a watch keeps the one it asks for.
constexpr size_t kMaxNameBytes = 200;

grpc::Status CheckName(const std::string& name) {
  if (name.size() <= kMaxNameBytes) return grpc::Status::OK;
  return {grpc::StatusCode::INVALID_ARGUMENT,
          absl::StrCat("the service name has ", name.size(),
                       " bytes, the limit is ", kMaxNameBytes)};
}

}  // namespace

class HealthService::WatchCall final
    : public WriteStream<Request, Response>,
      public std::enable_shared_from_this<WatchCall> {
 public:
  static void Await(HealthService& health, QueueLoop& loop,
                    grpc::ServerCompletionQueue& queue) {
    std::shared_ptr<WatchCall> call(new WatchCall(health, loop, queue));
    health.RequestWatch(call->context(), call->request(), call->writer(),
                        &queue, &queue, call->Arm(call));
  }

 private:
  WatchCall(HealthService& health, QueueLoop& loop,
            grpc::ServerCompletionQueue& queue)
      : WriteStream(loop), health_(health), loop_(loop), queue_(queue) {}

  void Begin() override {
    Await(health_, loop_, queue_);
    grpc::Status status = CheckName(request()->service());
    if (status.ok()) status = health_.Add(shared_from_this());
    if (!status.ok()) return End(status);
    Advance();
  }

  bool MakeMessage(Response& message) override {
    const Response::ServingStatus status =
        health_.StatusOf(request()->service());
    if (told_ == status) return false;
    told_ = status;
    message.set_status(status);
    return true;
  }

  void OnEnded(const grpc::Status&) override { health_.Remove(this); }

  HealthService& health_;
  QueueLoop& loop_;
  grpc::ServerCompletionQueue& queue_;
  std::optional<Response::ServingStatus> told_;
};

HealthService::HealthService(const std::vector<std::string>& names)
    : names_([&] {
        std::set<std::string> all(names.begin(), names.end());
        all.insert("");
        return all;
      }()) {}

HealthService::~HealthService() = default;

void HealthService::Serve(QueueLoop& loop, grpc::ServerCompletionQueue& queue) {
  UnaryCall<Request, Response>::Await(
      loop, {.ask =
                 [this, &queue](auto* context, auto* request, auto* writer,
                                void* tag) {
                   RequestCheck(context, request, writer, &queue, &queue, tag);
                 },
             .answer =
                 [this](const Request& request, Response& response) {
                   return Answer(request, response);
                 }});
  WatchCall::Await(*this, loop, queue);
}

HealthService::Response::ServingStatus HealthService::StatusOf(
    const std::string& name) const {
  if (!names_.contains(name)) return Response::SERVICE_UNKNOWN;
  MutexLock lock(&mutex_);
  return serving_ ? Response::SERVING : Response::NOT_SERVING;
}

grpc::Status HealthService::Answer(const Request& request,
                                   Response& response) const {
  const std::string& name = request.service();
  if (grpc::Status status = CheckName(name); !status.ok()) return status;
  const Response::ServingStatus status = StatusOf(name);
  if (status == Response::SERVICE_UNKNOWN) {
    return {grpc::StatusCode::NOT_FOUND,
            absl::StrCat("no service has the name ", name)};
  }
  response.set_status(status);
  return grpc::Status::OK;
}

void HealthService::SetServing(bool serving) {
  {
    MutexLock lock(&mutex_);
    if (std::exchange(serving_, serving) == serving) return;
  }
  for (const auto& watch : Watches()) watch->Advance();
}

void HealthService::EndWatches() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  for (const auto& watch : Watches()) {
    watch->End({grpc::StatusCode::UNAVAILABLE, "the server shuts down"},
               /*tell_first=*/true);
  }
}

grpc::Status HealthService::Add(std::shared_ptr<WatchCall> watch) {
  MutexLock lock(&mutex_);
  if (ending_) {
    return {grpc::StatusCode::UNAVAILABLE, "the server shuts down"};
  }
  if (watches_.size() >= kMaxWatches) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED,
            absl::StrCat("the limit of ", kMaxWatches, " watches is reached")};
  }
  watches_.push_back(std::move(watch));
  return grpc::Status::OK;
}

void HealthService::Remove(const WatchCall* watch) {
  MutexLock lock(&mutex_);
  std::erase_if(watches_,
                [&](const auto& entry) { return entry.get() == watch; });
}

std::vector<std::shared_ptr<HealthService::WatchCall>> HealthService::Watches()
    const {
  MutexLock lock(&mutex_);
  return watches_;
}

}  // namespace engram
