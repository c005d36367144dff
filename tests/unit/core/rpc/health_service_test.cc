#include "core/rpc/health_service.h"

#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "core/rpc/channel.h"
#include "core/rpc/rpc_server.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using ::grpc::health::v1::Health;
using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;
using ::testing::HasSubstr;

constexpr char kName[] = "engram.v1.TableService";

class HealthServiceTest : public ::testing::Test {
 protected:
  // A watch of one client.
  struct Watch {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader;

    // The next status that is told; -1: the end.
    int Next() {
      HealthCheckResponse response;
      return reader->Read(&response) ? response.status() : -1;
    }
  };

  void SetUp() override {
    auto server = RpcServer::Start(
        {.listen = "unix:" + dir_.File("s"), .service_names = {kName}});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = Health::NewStub(MakeChannel(server_->address()));
  }

  static void SetDeadline(grpc::ClientContext& context) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
  }
  static HealthCheckRequest Request(const std::string& name) {
    HealthCheckRequest request;
    request.set_service(name);
    return request;
  }
  grpc::Status Check(const std::string& name, HealthCheckResponse& response) {
    grpc::ClientContext context;
    SetDeadline(context);
    return stub_->Check(&context, Request(name), &response);
  }
  int StatusOf(const std::string& name) {
    HealthCheckResponse response;
    const grpc::Status status = Check(name, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.status();
  }
  std::unique_ptr<Watch> StartWatch(const std::string& name) {
    auto watch = std::make_unique<Watch>();
    SetDeadline(watch->context);
    watch->reader = stub_->Watch(&watch->context, Request(name));
    return watch;
  }

  const test::TempDir dir_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<Health::Stub> stub_;
};

TEST_F(HealthServiceTest, CheckFollowsSetServing) {
  EXPECT_EQ(StatusOf(""), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(StatusOf(kName), HealthCheckResponse::NOT_SERVING);
  server_->SetServing(true);
  EXPECT_EQ(StatusOf(""), HealthCheckResponse::SERVING);
  EXPECT_EQ(StatusOf(kName), HealthCheckResponse::SERVING);
  server_->SetServing(false);
  EXPECT_EQ(StatusOf(kName), HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthServiceTest, CheckOfAnUnknownNameIsNotFound) {
  HealthCheckResponse response;
  const grpc::Status status = Check("no.such.Service", response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("no.such.Service"));
}

TEST_F(HealthServiceTest, LongNamesAreRefused) {
  HealthCheckResponse response;
  const grpc::Status status = Check(std::string(201, 'n'), response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("201"));
  const auto watch = StartWatch(std::string(201, 'n'));
  EXPECT_EQ(watch->Next(), -1);
  EXPECT_EQ(watch->reader->Finish().error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(HealthServiceTest, WatchTellsTheStatusThenItsChanges) {
  const auto all = StartWatch("");
  const auto one = StartWatch(kName);
  for (const auto& watch : {all.get(), one.get()}) {
    EXPECT_EQ(watch->Next(), HealthCheckResponse::NOT_SERVING);
  }
  server_->SetServing(true);
  server_->SetServing(true);
  for (const auto& watch : {all.get(), one.get()}) {
    EXPECT_EQ(watch->Next(), HealthCheckResponse::SERVING);
  }
  server_->SetServing(false);
  for (const auto& watch : {all.get(), one.get()}) {
    EXPECT_EQ(watch->Next(), HealthCheckResponse::NOT_SERVING);
  }
}

TEST_F(HealthServiceTest, WatchOfAnUnknownNameStaysOpen) {
  const auto watch = StartWatch("no.such.Service");
  EXPECT_EQ(watch->Next(), HealthCheckResponse::SERVICE_UNKNOWN);
  server_->SetServing(true);
  EXPECT_EQ(StatusOf(""), HealthCheckResponse::SERVING);
  watch->context.TryCancel();
  EXPECT_EQ(watch->Next(), -1);
  EXPECT_EQ(watch->reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(HealthServiceTest, ShutdownTellsWatchesAndEndsThem) {
  const auto watch = StartWatch("");
  EXPECT_EQ(watch->Next(), HealthCheckResponse::NOT_SERVING);
  server_->SetServing(true);
  // In order, although its deadline is far.
  server_->Shutdown(absl::Now() + absl::Hours(1));
  EXPECT_EQ(watch->Next(), HealthCheckResponse::SERVING);
  EXPECT_EQ(watch->Next(), -1);
  EXPECT_EQ(watch->reader->Finish().error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(HealthServiceTest, WatchesAreBounded) {
  std::vector<std::unique_ptr<Watch>> watches;
  for (size_t i = 0; i < HealthService::kMaxWatches; ++i) {
    watches.push_back(StartWatch(""));
    ASSERT_EQ(watches.back()->Next(), HealthCheckResponse::NOT_SERVING);
  }
  // On a connection of its own: one has no room for more streams.
  const auto other = Health::NewStub(MakeChannel(server_->address()));
  grpc::ClientContext context;
  SetDeadline(context);
  const auto refused = other->Watch(&context, Request(""));
  HealthCheckResponse response;
  EXPECT_FALSE(refused->Read(&response));
  const grpc::Status status = refused->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("1024"));
}

TEST_F(HealthServiceTest, WatchersComeAndGoWhileTheStatusChanges) {
  constexpr int kRounds = 200;
  std::thread changes([&] {
    for (int i = 0; i < kRounds; ++i) server_->SetServing(i % 2 == 0);
  });
  for (int i = 0; i < kRounds; ++i) {
    const auto watch = StartWatch("");
    EXPECT_NE(watch->Next(), -1);
    watch->context.TryCancel();
  }
  changes.join();
  const auto watch = StartWatch("");
  EXPECT_EQ(watch->Next(), HealthCheckResponse::NOT_SERVING);
}

}  // namespace
}  // namespace engram
