#include <google/protobuf/stubs/logging.h>

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/wire/error_detail.h"
#include "tests/fuzz/fuzz_input.h"

namespace engram {
namespace {

// Everything a client asks of a status that a peer sent.
void Examine(const absl::Status& status) {
  ReasonOf(status);
  MetadataOf(status, "server");
  const auto delay = RetryAfterOf(status);
  ENGRAM_CHECK(!delay.has_value() || *delay >= absl::ZeroDuration());
  const auto missing = MissingPartitionsOf(status);
  for (size_t i = 1; i < missing.size(); ++i) {
    ENGRAM_CHECK(missing[i - 1] < missing[i]);
  }
  ENGRAM_CHECK(FromRpcStatusProto(ToRpcStatusProto(status)) == status);
}

}  // namespace
}  // namespace engram

// Input: the bytes of a google.rpc.Status; also taken for the payload of each
// kind of detail.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  google::protobuf::SetLogHandler(nullptr);  // it reports each bad string
  const std::string bytes(engram::test::AsText(data, size));
  google::rpc::Status proto;
  if (proto.ParseFromString(bytes)) {
    engram::Examine(engram::FromRpcStatusProto(proto));
  }
  absl::Status status = absl::UnavailableError("x");
  for (const char* type : {"google.rpc.ErrorInfo", "google.rpc.RetryInfo",
                           "engram.v1.PartitionNotHere"}) {
    status.SetPayload(absl::StrCat("type.googleapis.com/", type),
                      absl::Cord(bytes));
  }
  engram::Examine(status);
  return 0;
}
