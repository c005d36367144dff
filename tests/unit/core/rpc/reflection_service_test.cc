#include "core/rpc/reflection_service.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "core/rpc/channel.h"
#include "core/rpc/rpc_server.h"
#include "engram/v1/table.grpc.pb.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using ::grpc::reflection::v1alpha::ServerReflection;
using Request = ::grpc::reflection::v1alpha::ServerReflectionRequest;
using Response = ::grpc::reflection::v1alpha::ServerReflectionResponse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class ReflectionServiceTest : public ::testing::Test {
 protected:
  struct Stream {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<Request, Response>> calls;

    bool Ask(const Request& request, Response& response) const {
      return calls->Write(request) && calls->Read(&response);
    }
  };

  void SetUp() override {
    auto server = RpcServer::Start(
        {.listen = "unix:" + dir_.File("s"),
         .services = {&service_},
         .service_names = {v1::TableService::service_full_name()}});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = ServerReflection::NewStub(MakeChannel(server_->address()));
    stream_ = Open();
  }

  std::unique_ptr<Stream> Open() {
    auto stream = std::make_unique<Stream>();
    stream->context.set_deadline(
        absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
    stream->calls = stub_->ServerReflectionInfo(&stream->context);
    return stream;
  }
  Response Ask(const Request& request) {
    Response response;
    EXPECT_TRUE(stream_->Ask(request, response));
    EXPECT_EQ(response.original_request().SerializeAsString(),
              request.SerializeAsString());
    return response;
  }
  int ErrorOf(const Request& request) {
    return Ask(request).error_response().error_code();
  }
  static std::vector<std::string> FilesOf(const Response& response) {
    std::vector<std::string> names;
    for (const std::string& bytes :
         response.file_descriptor_response().file_descriptor_proto()) {
      google::protobuf::FileDescriptorProto file;
      EXPECT_TRUE(file.ParseFromString(bytes));
      names.push_back(file.name());
    }
    return names;
  }

  const test::TempDir dir_;
  v1::TableService::CallbackService service_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<ServerReflection::Stub> stub_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(ReflectionServiceTest, ListsAllServices) {
  Request request;
  request.set_host("h");
  request.set_list_services("");
  const Response response = Ask(request);
  EXPECT_EQ(response.valid_host(), "h");
  std::vector<std::string> names;
  for (const auto& service : response.list_services_response().service()) {
    names.push_back(service.name());
  }
  EXPECT_THAT(names,
              ElementsAre("engram.v1.TableService", "grpc.health.v1.Health",
                          "grpc.reflection.v1alpha.ServerReflection"));
}

TEST_F(ReflectionServiceTest, FilesComeWithWhatTheyImport) {
  Request request;
  request.set_file_by_filename("engram/v1/table.proto");
  EXPECT_THAT(FilesOf(Ask(request)),
              UnorderedElementsAre(
                  "engram/v1/table.proto", "engram/v1/errors.proto",
                  "google/rpc/status.proto", "google/protobuf/any.proto"));
  request.set_file_by_filename("no.proto");
  const Response response = Ask(request);
  EXPECT_EQ(response.error_response().error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(response.error_response().error_message(), HasSubstr("no.proto"));
}

TEST_F(ReflectionServiceTest, FindsTheFileOfASymbol) {
  Request request;
  for (const char* symbol :
       {"grpc.health.v1.Health", "grpc.health.v1.Health.Check",
        "grpc.health.v1.HealthCheckRequest"}) {
    request.set_file_containing_symbol(symbol);
    EXPECT_THAT(FilesOf(Ask(request)),
                ElementsAre("grpc/health/v1/health.proto"));
  }
  request.set_file_containing_symbol("grpc.health.v1.Nothing");
  EXPECT_EQ(ErrorOf(request), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ReflectionServiceTest, AnswersAboutExtensions) {
  constexpr char kType[] = "grpc.health.v1.HealthCheckRequest";
  Request request;
  request.set_all_extension_numbers_of_type(kType);
  const Response response = Ask(request);
  EXPECT_EQ(response.all_extension_numbers_response().base_type_name(), kType);
  EXPECT_EQ(response.all_extension_numbers_response().extension_number_size(),
            0);
  request.set_all_extension_numbers_of_type("no.Type");
  EXPECT_EQ(ErrorOf(request), grpc::StatusCode::NOT_FOUND);
  request.mutable_file_containing_extension()->set_containing_type(kType);
  request.mutable_file_containing_extension()->set_extension_number(5);
  EXPECT_EQ(ErrorOf(request), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ReflectionServiceTest, AnEmptyRequestLeavesTheStreamAlive) {
  EXPECT_EQ(ErrorOf(Request()), grpc::StatusCode::UNIMPLEMENTED);
  Request request;
  request.set_list_services("");
  EXPECT_TRUE(Ask(request).has_list_services_response());
  stream_->calls->WritesDone();
  Response response;
  EXPECT_FALSE(stream_->calls->Read(&response));
  EXPECT_TRUE(stream_->calls->Finish().ok());
}

TEST_F(ReflectionServiceTest, StreamsAreBounded) {
  Request request;
  request.set_list_services("");
  Response response;
  ASSERT_TRUE(stream_->Ask(request, response));
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 1; i < ReflectionService::kMaxStreams; ++i) {
    streams.push_back(Open());
    ASSERT_TRUE(streams.back()->Ask(request, response));
  }
  const auto refused = Open();
  EXPECT_FALSE(refused->Ask(request, response));
  EXPECT_EQ(refused->calls->Finish().error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  stream_->calls->WritesDone();
  EXPECT_TRUE(stream_->calls->Finish().ok());
  // Its place is free once the server has seen the end of the call.
  bool answered = false;
  const absl::Time soon = absl::Now() + absl::Seconds(20);
  while (!answered && absl::Now() < soon) {
    answered = Open()->Ask(request, response);
  }
  EXPECT_TRUE(answered);
}

}  // namespace
}  // namespace engram
