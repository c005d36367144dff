#include "core/rpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include <set>

#include "absl/strings/str_cat.h"

namespace engram {
namespace {

namespace pb = ::google::protobuf;
using ::grpc::reflection::v1alpha::ExtensionNumberResponse;
using ::grpc::reflection::v1alpha::ExtensionRequest;
using ::grpc::reflection::v1alpha::FileDescriptorResponse;
using Request = ::grpc::reflection::v1alpha::ServerReflectionRequest;
using Response = ::grpc::reflection::v1alpha::ServerReflectionResponse;

const pb::DescriptorPool& Pool() {
  return *pb::DescriptorPool::generated_pool();
}

grpc::Status NotFound(const char* what, const std::string& name) {
  return {grpc::StatusCode::NOT_FOUND,
          absl::StrCat("there is no ", what, " ", name)};
}

// The file and what it imports, each once.
void AddFiles(const pb::FileDescriptor& file, std::set<std::string>& added,
              FileDescriptorResponse& out) {
  if (!added.insert(file.name()).second) return;
  pb::FileDescriptorProto proto;
  file.CopyTo(&proto);
  out.add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) {
    AddFiles(*file.dependency(i), added, out);
  }
}

grpc::Status AnswerFiles(const pb::FileDescriptor& file, Response& response) {
  std::set<std::string> added;
  AddFiles(file, added, *response.mutable_file_descriptor_response());
  return grpc::Status::OK;
}

grpc::Status AnswerExtension(const ExtensionRequest& request,
                             Response& response) {
  const pb::Descriptor* type =
      Pool().FindMessageTypeByName(request.containing_type());
  if (type == nullptr) return NotFound("type", request.containing_type());
  const pb::FieldDescriptor* extension =
      Pool().FindExtensionByNumber(type, request.extension_number());
  if (extension != nullptr) return AnswerFiles(*extension->file(), response);
  return NotFound("extension", absl::StrCat(request.extension_number(), " of ",
                                            request.containing_type()));
}

grpc::Status AnswerExtensionNumbers(const std::string& name,
                                    Response& response) {
  const pb::Descriptor* type = Pool().FindMessageTypeByName(name);
  if (type == nullptr) return NotFound("type", name);
  std::vector<const pb::FieldDescriptor*> extensions;
  Pool().FindAllExtensions(type, &extensions);
  ExtensionNumberResponse& out =
      *response.mutable_all_extension_numbers_response();
  out.set_base_type_name(name);
  for (const pb::FieldDescriptor* extension : extensions) {
    out.add_extension_number(extension->number());
  }
  return grpc::Status::OK;
}

grpc::Status Answer(const Request& request,
                    const std::vector<std::string>& service_names,
                    Response& response) {
  switch (request.message_request_case()) {
    case Request::kFileByFilename: {
      const std::string& name = request.file_by_filename();
      const pb::FileDescriptor* file = Pool().FindFileByName(name);
      if (file == nullptr) return NotFound("file", name);
      return AnswerFiles(*file, response);
    }
    case Request::kFileContainingSymbol: {
      const std::string& name = request.file_containing_symbol();
      const pb::FileDescriptor* file = Pool().FindFileContainingSymbol(name);
      if (file == nullptr) return NotFound("symbol", name);
      return AnswerFiles(*file, response);
    }
    case Request::kFileContainingExtension:
      return AnswerExtension(request.file_containing_extension(), response);
    case Request::kAllExtensionNumbersOfType:
      return AnswerExtensionNumbers(request.all_extension_numbers_of_type(),
                                    response);
    case Request::kListServices:
      for (const std::string& name : service_names) {
        response.mutable_list_services_response()->add_service()->set_name(
            name);
      }
      return grpc::Status::OK;
    case Request::MESSAGE_REQUEST_NOT_SET:
      break;
  }
  return {grpc::StatusCode::UNIMPLEMENTED, "the request asks nothing known"};
}

}  // namespace

// One stream. There is always one event to come, a read or a write or the end,
// and a call that is cancelled fails it. Deletes itself when it is done.
class ReflectionService::Call final {
 public:
  static void Await(ReflectionService& service, QueueLoop& loop,
                    grpc::ServerCompletionQueue& queue) {
    auto* const call = new Call(service, loop, queue);
    service.RequestServerReflectionInfo(&call->context_, &call->stream_, &queue,
                                        &queue, call->arrived_.tag());
  }

 private:
  Call(ReflectionService& service, QueueLoop& loop,
       grpc::ServerCompletionQueue& queue)
      : service_(service), loop_(loop), queue_(queue) {}

  void OnArrived(bool ok) {
    if (!ok) {  // the server shuts down; no call has begun
      delete this;
      return;
    }
    Await(service_, loop_, queue_);
    if (service_.open_streams_.fetch_add(1) >= kMaxStreams) {
      return Finish(
          {grpc::StatusCode::RESOURCE_EXHAUSTED,
           absl::StrCat("the limit of ", kMaxStreams, " streams is reached")});
    }
    Read();
  }

  void Read() { stream_.Read(&request_, read_.tag()); }

  void OnRead(bool ok) {
    if (!ok) return Finish(grpc::Status::OK);
    request_.DiscardUnknownFields();
    if (request_.ByteSizeLong() > kMaxRequestBytes) {
      return Finish({grpc::StatusCode::INVALID_ARGUMENT,
                     absl::StrCat("a request of ", request_.ByteSizeLong(),
                                  " bytes, the limit is ", kMaxRequestBytes)});
    }
    Response response;
    const grpc::Status status =
        Answer(request_, service_.service_names_, response);
    if (!status.ok()) {
      response.mutable_error_response()->set_error_code(status.error_code());
      response.mutable_error_response()->set_error_message(
          status.error_message());
    }
    response.set_valid_host(request_.host());
    response.mutable_original_request()->Swap(&request_);
    stream_.Write(response, written_.tag());
  }

  void OnWritten(bool ok) {
    if (!ok) return Finish(grpc::Status::OK);
    Read();
  }

  void Finish(const grpc::Status& status) {
    stream_.Finish(status, finished_.tag());
  }

  void OnFinished(bool) {
    service_.open_streams_.fetch_sub(1);
    delete this;
  }

  ReflectionService& service_;
  QueueLoop& loop_;
  const QueueLoop::Hold hold_{loop_};
  grpc::ServerCompletionQueue& queue_;
  MemberEvent<Call, &Call::OnArrived> arrived_{this};
  MemberEvent<Call, &Call::OnRead> read_{this};
  MemberEvent<Call, &Call::OnWritten> written_{this};
  MemberEvent<Call, &Call::OnFinished> finished_{this};
  grpc::ServerContext context_;
  Request request_;
  grpc::ServerAsyncReaderWriter<Response, Request> stream_{&context_};
};

void ReflectionService::Serve(QueueLoop& loop,
                              grpc::ServerCompletionQueue& queue) {
  Call::Await(*this, loop, queue);
}

}  // namespace engram
