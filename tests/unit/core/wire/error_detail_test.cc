#include "core/wire/error_detail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_annotate.h"
#include "engram/v1/errors.pb.h"
#include "google/rpc/error_details.pb.h"

namespace engram {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kErrorInfoUrl[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr char kRetryInfoUrl[] = "type.googleapis.com/google.rpc.RetryInfo";
constexpr char kNotHereUrl[] = "type.googleapis.com/engram.v1.PartitionNotHere";

// Over the wire and back: as bytes of google.rpc.Status.
absl::Status RoundTrip(const absl::Status& status) {
  const std::string bytes = ToRpcStatusProto(status).SerializeAsString();
  google::rpc::Status proto;
  EXPECT_TRUE(proto.ParseFromString(bytes));
  return FromRpcStatusProto(proto);
}

// The part of grpc::Status that the templates use.
class FakeGrpcStatus {
 public:
  enum Code { OK = 0, UNAVAILABLE = 14, UNAUTHENTICATED = 16 };

  FakeGrpcStatus() = default;
  FakeGrpcStatus(Code code, std::string message, std::string details = "")
      : code_(code),
        message_(std::move(message)),
        details_(std::move(details)) {}
  bool ok() const { return code_ == OK; }
  Code error_code() const { return code_; }
  const std::string& error_message() const { return message_; }
  const std::string& error_details() const { return details_; }

 private:
  Code code_ = OK;
  std::string message_;
  std::string details_;
};

struct Reason {
  ErrorReason reason;
  const char* name;
  absl::StatusCode code;
};

constexpr Reason kReasons[] = {
    {ErrorReason::kWrongTable, "WRONG_TABLE",
     absl::StatusCode::kFailedPrecondition},
    {ErrorReason::kPartitionNotHere, "PARTITION_NOT_HERE",
     absl::StatusCode::kUnavailable},
    {ErrorReason::kRowOutOfRange, "ROW_OUT_OF_RANGE",
     absl::StatusCode::kOutOfRange},
    {ErrorReason::kUnknownLayer, "UNKNOWN_LAYER", absl::StatusCode::kNotFound},
    {ErrorReason::kOverloaded, "OVERLOADED",
     absl::StatusCode::kResourceExhausted},
    {ErrorReason::kDraining, "DRAINING", absl::StatusCode::kUnavailable},
    {ErrorReason::kTooLarge, "TOO_LARGE", absl::StatusCode::kInvalidArgument},
    {ErrorReason::kNotReady, "NOT_READY", absl::StatusCode::kUnavailable},
};

TEST(ErrorDetailTest, EveryReasonSurvivesTheWire) {
  for (const Reason& reason : kReasons) {
    SCOPED_TRACE(reason.name);
    const absl::Status sent = MakeError(reason.reason, "what went wrong",
                                        {{"layer", "14"}, {"k", ""}});
    EXPECT_EQ(sent.code(), reason.code);
    EXPECT_EQ(ReasonName(reason.reason), reason.name);
    google::rpc::ErrorInfo info;
    ASSERT_TRUE(
        info.ParseFromString(std::string(*sent.GetPayload(kErrorInfoUrl))));
    EXPECT_EQ(info.reason(), reason.name);
    EXPECT_EQ(info.domain(), "engram.v1");
    for (const absl::Status& got :
         {RoundTrip(sent), Annotate(RoundTrip(sent), "here"),
          FromGrpcStatus(ToGrpcStatus<FakeGrpcStatus>(sent))}) {
      EXPECT_EQ(got.code(), reason.code);
      EXPECT_THAT(std::string(got.message()), HasSubstr("what went wrong"));
      EXPECT_EQ(ReasonOf(got), reason.reason);
      EXPECT_EQ(MetadataOf(got, "layer"), "14");
      EXPECT_EQ(MetadataOf(got, "k"), "");
      EXPECT_EQ(MetadataOf(got, "none"), "");
      EXPECT_EQ(RetryAfterOf(got), std::nullopt);
      EXPECT_THAT(MissingPartitionsOf(got), IsEmpty());
    }
  }
}

TEST(ErrorDetailTest, StatusesWithoutDetails) {
  EXPECT_EQ(ReasonName(ErrorReason::kNone), "");
  EXPECT_EQ(RoundTrip(absl::OkStatus()), absl::OkStatus());
  EXPECT_TRUE(ToGrpcStatus<FakeGrpcStatus>(absl::OkStatus()).ok());
  EXPECT_EQ(FromGrpcStatus(FakeGrpcStatus()), absl::OkStatus());
  const absl::Status plain = absl::NotFoundError("x");
  EXPECT_EQ(RoundTrip(plain), plain);
  EXPECT_EQ(ReasonOf(plain), ErrorReason::kNone);
  EXPECT_EQ(MetadataOf(plain, "layer"), "");
  const auto on_wire = ToGrpcStatus<FakeGrpcStatus>(plain);
  EXPECT_TRUE(on_wire.error_details().empty());
  EXPECT_EQ(FromGrpcStatus(on_wire), plain);
}

TEST(ErrorDetailTest, RetryAfter) {
  for (const absl::Duration delay :
       {absl::ZeroDuration(), absl::Nanoseconds(1), absl::Milliseconds(1500),
        absl::Hours(100)}) {
    const absl::Status status = RoundTrip(
        WithRetryAfter(MakeError(ErrorReason::kOverloaded, "busy"), delay));
    EXPECT_EQ(RetryAfterOf(status), delay);
    EXPECT_EQ(ReasonOf(status), ErrorReason::kOverloaded);
  }
}

TEST(ErrorDetailTest, MissingPartitionsOfTheTrueLayout) {
  constexpr uint32_t kPartitions = 5860;
  const std::vector<std::pair<LayerId, uint32_t>> counts = {
      {LayerId{1}, kPartitions}, {LayerId{14}, kPartitions}};
  std::mt19937 random(3);
  for (const uint32_t keep_one_in : {1U, 2U, 100U, 5860U}) {
    std::vector<PartitionRef> missing;
    for (const auto& [layer, count] : counts) {
      for (uint32_t p = 0; p < count; ++p) {
        if (random() % keep_one_in == 0) {
          missing.push_back({layer, PartitionId{p}});
        }
      }
    }
    const absl::Status status =
        PartitionNotHereError("table-3", missing, counts);
    EXPECT_EQ(ReasonOf(status), ErrorReason::kPartitionNotHere);
    EXPECT_EQ(MetadataOf(status, "server"), "table-3");
    EXPECT_EQ(MetadataOf(status, "count"), absl::StrCat(missing.size()));
    EXPECT_EQ(MissingPartitionsOf(RoundTrip(status)), missing);
    // Fits in the trailers of a call, whose limit is 8 KiB by default.
    EXPECT_LT(ToRpcStatusProto(status).ByteSizeLong(), 2048U);
  }
}

TEST(ErrorDetailTest, FirstAndLastPartition) {
  const std::vector<PartitionRef> missing = {{LayerId{1}, PartitionId{0}},
                                             {LayerId{1}, PartitionId{5859}},
                                             {LayerId{14}, PartitionId{8}}};
  const absl::Status status = PartitionNotHereError(
      "a", missing, {{LayerId{1}, 5860}, {LayerId{2}, 64}, {LayerId{14}, 9}});
  EXPECT_EQ(MissingPartitionsOf(RoundTrip(status)), missing);
  EXPECT_EQ(std::string(status.message()),
            "server a does not hold layer 1 partition 0, layer 1 partition "
            "5859, layer 14 partition 8");
}

TEST(ErrorDetailTest, MessageNamesTheFirstFew) {
  std::vector<PartitionRef> missing;
  for (uint32_t p = 0; p < 100; ++p) {
    missing.push_back({LayerId{1}, PartitionId{p}});
  }
  const absl::Status status =
      PartitionNotHereError("a", missing, {{LayerId{1}, 100}});
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("layer 1 partition 3 and 96 more"));
}

// What a peer of another release or a broken one may send.

TEST(HostileDetailTest, PayloadsThatDoNotParseAreAbsent) {
  absl::Status status = absl::UnavailableError("x");
  for (const char* url : {kErrorInfoUrl, kRetryInfoUrl, kNotHereUrl}) {
    status.SetPayload(url, absl::Cord("\xff\xff\xff\xff"));
  }
  EXPECT_EQ(ReasonOf(status), ErrorReason::kNone);
  EXPECT_EQ(MetadataOf(status, "server"), "");
  EXPECT_EQ(RetryAfterOf(status), std::nullopt);
  EXPECT_THAT(MissingPartitionsOf(status), IsEmpty());
}

TEST(HostileDetailTest, OtherDomainsAndUnknownReasonsAreNone) {
  google::rpc::ErrorInfo info;
  info.set_reason("DRAINING");
  info.set_domain("example.com");
  absl::Status status = absl::UnavailableError("x");
  status.SetPayload(kErrorInfoUrl, absl::Cord(info.SerializeAsString()));
  EXPECT_EQ(ReasonOf(status), ErrorReason::kNone);
  info.set_domain("engram.v1");
  info.set_reason("OF_RELEASE_9");
  status.SetPayload(kErrorInfoUrl, absl::Cord(info.SerializeAsString()));
  EXPECT_EQ(ReasonOf(status), ErrorReason::kNone);
}

TEST(HostileDetailTest, BitmapsAndCountsThatDisagree) {
  v1::PartitionNotHere detail;
  const auto add = [&](uint32_t layer, uint32_t count, std::string bitmap) {
    auto* partitions = detail.add_missing();
    partitions->set_layer_id(layer);
    partitions->set_partition_count(count);
    partitions->set_bitmap(std::move(bitmap));
  };
  add(1, UINT32_MAX, "\x81");  // a count far above the bitmap
  add(2, 3, "\xff\xff");       // bits past the count
  add(3, 0, "\xff");           // nothing counts
  add(4, 100, "");             // no bitmap
  add(1, 8, "\x01");           // a layer again
  absl::Status status = absl::UnavailableError("x");
  status.SetPayload(kNotHereUrl, absl::Cord(detail.SerializeAsString()));
  EXPECT_THAT(MissingPartitionsOf(status),
              ElementsAre(PartitionRef{LayerId{1}, PartitionId{0}},
                          PartitionRef{LayerId{1}, PartitionId{7}},
                          PartitionRef{LayerId{2}, PartitionId{0}},
                          PartitionRef{LayerId{2}, PartitionId{1}},
                          PartitionRef{LayerId{2}, PartitionId{2}}));
}

TEST(HostileDetailTest, HugeBitmapIsIgnored) {
  v1::PartitionNotHere detail;
  auto* partitions = detail.add_missing();
  partitions->set_partition_count(UINT32_MAX);
  partitions->set_bitmap(std::string(2 << 20, '\xff'));
  absl::Status status = absl::UnavailableError("x");
  status.SetPayload(kNotHereUrl, absl::Cord(detail.SerializeAsString()));
  EXPECT_THAT(MissingPartitionsOf(status), IsEmpty());
}

TEST(HostileDetailTest, RetryDelaysOfAnySizeAreDurations) {
  const auto delay_of = [](int64_t seconds, int32_t nanos) {
    google::rpc::RetryInfo info;
    info.mutable_retry_delay()->set_seconds(seconds);
    info.mutable_retry_delay()->set_nanos(nanos);
    absl::Status status = absl::UnavailableError("x");
    status.SetPayload(kRetryInfoUrl, absl::Cord(info.SerializeAsString()));
    return *RetryAfterOf(status);
  };
  EXPECT_EQ(delay_of(-5, 0), absl::ZeroDuration());
  EXPECT_EQ(delay_of(INT64_MIN, INT32_MIN), absl::ZeroDuration());
  EXPECT_GT(delay_of(INT64_MAX, INT32_MAX), absl::Hours(1));
  EXPECT_EQ(delay_of(0, 1), absl::Nanoseconds(1));
}

TEST(HostileDetailTest, CodesOutsideTheRangeAreUnknown) {
  for (const int code : {-1, 17, 12345, INT32_MIN, INT32_MAX}) {
    google::rpc::Status proto;
    proto.set_code(code);
    proto.set_message("m");
    const absl::Status status = FromRpcStatusProto(proto);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);
    EXPECT_EQ(status.message(), "m");
  }
  google::rpc::Status ok;
  ok.set_message("ignored");
  ok.add_details()->set_type_url(kErrorInfoUrl);
  EXPECT_EQ(FromRpcStatusProto(ok), absl::OkStatus());
}

TEST(HostileDetailTest, OtherTypesAreDroppedAndRepeatsReplace) {
  google::rpc::Status proto = ToRpcStatusProto(
      MakeError(ErrorReason::kDraining, "m", {{"server", "a"}}));
  *proto.add_details() = ToRpcStatusProto(MakeError(ErrorReason::kDraining, "m",
                                                    {{"server", "b"}}))
                             .details(0);
  auto* other = proto.add_details();
  other->set_type_url("example.com/Other");
  other->set_value("x");
  proto.add_details();
  const absl::Status status = FromRpcStatusProto(proto);
  EXPECT_EQ(MetadataOf(status, "server"), "b");
  EXPECT_EQ(ToRpcStatusProto(status).details_size(), 1);
}

TEST(HostileDetailTest, GrpcDetailsThatDoNotParse) {
  const absl::Status status = FromGrpcStatus(
      FakeGrpcStatus(FakeGrpcStatus::UNAVAILABLE, "down", "\xff\xff"));
  EXPECT_EQ(status, absl::UnavailableError("down"));
  // The call's own code and message win over those in the details.
  google::rpc::Status lies;
  lies.set_code(0);
  lies.set_message("fine");
  EXPECT_EQ(FromGrpcStatus(FakeGrpcStatus(FakeGrpcStatus::UNAVAILABLE, "down",
                                          lies.SerializeAsString())),
            absl::UnavailableError("down"));
}

}  // namespace
}  // namespace engram
