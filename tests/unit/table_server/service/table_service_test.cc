#include "table_server/service/table_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <thread>

#include "core/base/notification.h"
#include "core/model/config.h"
#include "core/wire/gather_crc.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/service/service_fixture.h"

namespace engram {
namespace {

using ::engram::test::IsOk;
using ::testing::HasSubstr;

class TableServiceTest : public test::ServiceFixture {
 protected:
  // An asynchronous unary gather.
  struct Pending {
    grpc::ClientContext context;
    v1::GatherRequest request;
    v1::GatherResponse response;
    absl::Status status;
    Notification done;
  };
  std::unique_ptr<Pending> StartGather(v1::GatherRequest request) {
    auto pending = std::make_unique<Pending>();
    SetDeadline(pending->context);
    pending->request = std::move(request);
    Pending* raw = pending.get();
    stub_->async()->Gather(&raw->context, &raw->request, &raw->response,
                           [raw](const grpc::Status& status) {
                             raw->status = FromGrpcStatus(status);
                             raw->done.Notify();
                           });
    return pending;
  }
};

TEST_F(TableServiceTest, GetTableTellsIdentityShapesAndLimits) {
  Start();
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetTableResponse table;
  ASSERT_TRUE(stub_->GetTable(&context, {}, &table).ok());
  EXPECT_EQ(table.version(), manifest_.version());
  EXPECT_EQ(table.server_name(), "s1");
  EXPECT_EQ(table.instance_id(), 99U);
  const auto config = ParseConfig(table.config_json());
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(*config, manifest_.config());
  EXPECT_EQ(table.row_format().row_bytes(), manifest_.row_format().row_bytes());
  EXPECT_EQ(table.row_format().code_dtype(), "F8_E4M3");
  EXPECT_EQ(table.partition_rows(), manifest_.partition_rows());
  ASSERT_EQ(table.layers_size(), 2);
  EXPECT_EQ(table.layers(1).layer_id(), 14U);
  EXPECT_EQ(table.layers(1).row_count(), manifest_.layers()[1].row_count);
  EXPECT_EQ(table.layers(1).partition_count(), manifest_.partition_count(1));
  EXPECT_EQ(table.max_rows_per_gather(), 65536U);
  EXPECT_EQ(table.max_gathers_in_flight_per_stream(), 64U);
  EXPECT_FALSE(table.ready());
  service_->SetReady(true);
  grpc::ClientContext again;
  ASSERT_TRUE(stub_->GetTable(&again, {}, &table).ok());
  EXPECT_TRUE(table.ready());
}

TEST_F(TableServiceTest, GathersBothLayersWithChecksum) {
  Start();
  const std::vector<RowId> first = {1, 7, 1};
  const std::vector<RowId> second = {0};
  v1::GatherRequest request = Request(0, first);
  *request.add_layers() = Request(1, second).layers(0);
  request.set_version(manifest_.version());
  request.set_want_crc32c(true);
  v1::GatherResponse response;
  ASSERT_THAT(Gather(request, response), IsOk());
  EXPECT_EQ(response.version(), manifest_.version());
  EXPECT_EQ(response.rows(), Rows(0, first) + Rows(1, second));
  GatherCrc crc(manifest_.version());
  crc.AddLayer(layer(0), first);
  crc.AddLayer(layer(1), second);
  crc.AddRows({reinterpret_cast<const std::byte*>(response.rows().data()),
               response.rows().size()});
  EXPECT_EQ(response.crc32c(), crc.value());

  request.set_want_crc32c(false);
  ASSERT_THAT(Gather(request, response), IsOk());
  EXPECT_EQ(response.crc32c(), 0U);
}

TEST_F(TableServiceTest, EveryReasonReachesTheClient) {
  Start({.max_rows_per_gather = 100});
  v1::GatherRequest request = Request(0, {1});
  request.set_version("other");
  EXPECT_EQ(ReasonOf(Gather(request)), ErrorReason::kWrongTable);
  request = Request(0, {1});
  request.mutable_layers(0)->set_layer_id(3);
  EXPECT_EQ(ReasonOf(Gather(request)), ErrorReason::kUnknownLayer);
  EXPECT_EQ(ReasonOf(Gather(Request(0, {0xFFFFFFFF}))),
            ErrorReason::kRowOutOfRange);
  const absl::Status too_large = Gather(Request(0, std::vector<RowId>(101, 1)));
  EXPECT_EQ(ReasonOf(too_large), ErrorReason::kTooLarge);
  EXPECT_EQ(MetadataOf(too_large, "limit"), "100");
  EXPECT_THAT(Gather(Request(0, std::vector<RowId>(100, 1))), IsOk());
}

TEST_F(TableServiceTest, MessagesFarAboveTheLimitAreRefused) {
  Start();
  EXPECT_EQ(Gather(Request(0, std::vector<RowId>(3 << 20, 1))).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Gather(Request(0, {1})), IsOk());
}

TEST_F(TableServiceTest, ACallPastItsDeadlineIsNotGathered) {
  Start({}, &gated_tier_, /*worker_threads=*/1);
  const auto first = StartGather(Request(0, {1}));
  gated_tier_.WaitForCopy();  // the only worker is busy, others queue
  grpc::ClientContext context;
  context.set_deadline(
      absl::ToChronoTime(absl::Now() + absl::Milliseconds(50)));
  v1::GatherResponse response;
  EXPECT_EQ(stub_->Gather(&context, Request(0, {2}), &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  // The server counts from the arrival, so its deadline is somewhat later.
  clock_.Advance(absl::Seconds(20));
  gated_tier_.Open();
  first->done.Wait();
  EXPECT_THAT(first->status, IsOk());
  // The worker takes calls in order: the one past its deadline was before.
  EXPECT_THAT(Gather(Request(0, {1})), IsOk());
  EXPECT_EQ(gated_tier_.copies(), 2);
}

TEST_F(TableServiceTest, ACancelledCallLeavesNothingBehind) {
  Start({}, &gated_tier_, /*worker_threads=*/1);
  const auto first = StartGather(Request(0, {1}));
  gated_tier_.WaitForCopy();
  const auto cancelled = StartGather(Request(0, {2}));
  cancelled->context.TryCancel();
  cancelled->done.Wait();
  EXPECT_EQ(cancelled->status.code(), absl::StatusCode::kCancelled);
  gated_tier_.Open();
  first->done.Wait();
  EXPECT_THAT(first->status, IsOk());
  EXPECT_THAT(Gather(Request(0, {1})), IsOk());
  server_->Shutdown(absl::Now() + absl::Seconds(20));
  service_->UpdateGauges();
  EXPECT_EQ(metrics_.gauges().gathers_in_flight->Value(), 0);
}

TEST_F(TableServiceTest, MoreThanTheLimitIsOverloadedWithRetryInfo) {
  Start({.max_gathers_in_flight = 1, .retry_after = absl::Milliseconds(33)},
        &gated_tier_);
  const auto first = StartGather(Request(0, {1}));
  gated_tier_.WaitForCopy();
  const absl::Status status = Gather(Request(0, {1}));
  EXPECT_EQ(ReasonOf(status), ErrorReason::kOverloaded);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(RetryAfterOf(status), absl::Milliseconds(33));
  service_->UpdateGauges();
  EXPECT_EQ(metrics_.gauges().gathers_in_flight->Value(), 1);
  EXPECT_EQ(metrics_.gauges().gathers_limit->Value(), 1);
  gated_tier_.Open();
  first->done.Wait();
  EXPECT_THAT(first->status, IsOk());
}

TEST_F(TableServiceTest, TooManyLayersAreRefusedBeforeTheyAreAdmitted) {
  Start({.max_gathers_in_flight = 1}, &gated_tier_);
  const auto first = StartGather(Request(0, {1}));
  gated_tier_.WaitForCopy();
  v1::GatherRequest request;
  for (int i = 0; i < 1025; ++i) request.add_layers();
  const absl::Status status = Gather(request);
  EXPECT_EQ(ReasonOf(status), ErrorReason::kTooLarge);
  EXPECT_EQ(MetadataOf(status, "what"), "layers");
  gated_tier_.Open();
  first->done.Wait();
}

TEST_F(TableServiceTest, DrainedServerRefusesNewCallsAndEndsTheOld) {
  Start({}, &gated_tier_);
  const auto under_way = StartGather(Request(0, {1}));
  gated_tier_.WaitForCopy();
  service_->StopAccepting();
  EXPECT_FALSE(service_->Idle());
  const absl::Status status = Gather(Request(0, {1}));
  EXPECT_EQ(ReasonOf(status), ErrorReason::kDraining);
  EXPECT_EQ(MetadataOf(status, "server"), "s1");
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetTableResponse table;
  EXPECT_TRUE(stub_->GetTable(&context, {}, &table).ok());
  gated_tier_.Open();
  under_way->done.Wait();
  EXPECT_THAT(under_way->status, IsOk());
}

TEST_F(TableServiceTest, ServesWhileLoadingWhatIsThere) {
  PartitionSet some(manifest_);
  some.Add(0, PartitionId{2});
  TableService service(manifest_, some, tier_, metrics_, {.server_name = "s2"});
  const auto server = RpcServer::Start({.listen = "unix:" + dir_.File("t"),
                                        .services = {&service},
                                        .queue_service = &service});
  ASSERT_THAT(server, IsOk());
  stub_ = v1::TableService::NewStub(MakeChannel((*server)->address()));
  const RowId here = static_cast<RowId>(2 * manifest_.partition_rows());
  EXPECT_THAT(Gather(Request(0, {here})), IsOk());
  const absl::Status status = Gather(Request(0, {here, 0}));
  EXPECT_EQ(ReasonOf(status), ErrorReason::kPartitionNotHere);
  EXPECT_THAT(MissingPartitionsOf(status),
              ::testing::ElementsAre(PartitionRef{layer(0), PartitionId{0}}));
  some.Add(0, PartitionId{0});
  EXPECT_THAT(Gather(Request(0, {here, 0})), IsOk());
}

TEST_F(TableServiceTest, CountsCallsRowsAndBytes) {
  Start();
  ASSERT_THAT(Gather(Request(0, {1, 2, 3})), IsOk());
  EXPECT_FALSE(Gather(Request(0, {0xFFFFFFFF})).ok());
  server_->Shutdown(absl::Now() + absl::Seconds(20));  // all calls are counted
  service_->UpdateGauges();
  const std::string text =
      prometheus::TextSerializer().Serialize(registry_->Collect());
  for (const char* line :
       {"engram_table_calls_total{code=\"OK\",method=\"Gather\"} 1\n",
        "engram_table_calls_total{code=\"OUT_OF_RANGE\",method=\"Gather\"} 1\n",
        "engram_table_rows_total 3\n",
        "engram_table_gather_seconds_count{method=\"Gather\"} 2\n",
        "engram_table_gathers_in_flight 0\n",
        "engram_table_in_flight_bytes 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, HasSubstr(absl::StrCat(
                        "engram_table_row_bytes_total ",
                        3 * manifest_.row_format().row_bytes(), "\n")));
}

TEST_F(TableServiceTest, WatchTellsASnapshotThenChanges) {
  PartitionSet some(manifest_);
  some.Add(0, PartitionId{2});
  TableService service(manifest_, some, tier_, metrics_,
                       {.server_name = "s2", .instance_id = 5});
  const auto server = RpcServer::Start({.listen = "unix:" + dir_.File("t"),
                                        .services = {&service},
                                        .queue_service = &service});
  ASSERT_THAT(server, IsOk());
  stub_ = v1::TableService::NewStub(MakeChannel((*server)->address()));
  grpc::ClientContext context;
  SetDeadline(context);
  const auto reader = stub_->WatchPartitions(&context, {});
  v1::WatchPartitionsResponse message;
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_EQ(message.snapshot().version(), manifest_.version());
  EXPECT_EQ(message.snapshot().server_name(), "s2");
  EXPECT_EQ(message.snapshot().instance_id(), 5U);
  EXPECT_EQ(message.snapshot().layers(0).bitmap()[0], '\x04');
  EXPECT_FALSE(message.snapshot().draining());
  const uint64_t epoch = message.epoch();

  some.Add(1, PartitionId{3});
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_EQ(message.epoch(), epoch + 1);
  ASSERT_EQ(message.delta().added_size(), 1);
  EXPECT_EQ(message.delta().added(0).layer_id(), 14U);
  EXPECT_THAT(message.delta().added(0).partitions(), ::testing::ElementsAre(3));

  some.Withdraw(0, PartitionId{2});
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_EQ(message.epoch(), epoch + 2);
  EXPECT_EQ(message.delta().added_size(), 0);
  ASSERT_EQ(message.delta().removed_size(), 1);
  EXPECT_EQ(message.delta().removed(0).layer_id(), ToInt(layer(0)));
  EXPECT_THAT(message.delta().removed(0).partitions(),
              ::testing::ElementsAre(2));
  EXPECT_THAT(
      Gather(Request(0, {static_cast<RowId>(2 * manifest_.partition_rows())})),
      IsOk());

  some.AnnounceDraining();
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_EQ(message.epoch(), epoch + 3);
  EXPECT_TRUE(message.delta().draining());

  service.StopAccepting();
  EXPECT_FALSE(reader->Read(&message));
  EXPECT_EQ(ReasonOf(FromGrpcStatus(reader->Finish())), ErrorReason::kDraining);
}

TEST_F(TableServiceTest, AWatchTellsOfTheDrainBeforeItEnds) {
  Start();
  grpc::ClientContext context;
  SetDeadline(context);
  const auto reader = stub_->WatchPartitions(&context, {});
  v1::WatchPartitionsResponse message;
  ASSERT_TRUE(reader->Read(&message));
  partitions_.AnnounceDraining();
  service_->StopAccepting();
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_TRUE(message.delta().draining());
  EXPECT_FALSE(reader->Read(&message));
  EXPECT_EQ(ReasonOf(FromGrpcStatus(reader->Finish())), ErrorReason::kDraining);
}

TEST_F(TableServiceTest, AGatherUnderWayKeepsWhatIsDropped) {
  Start({}, &gated_tier_);
  const auto under_way = StartGather(Request(0, {1}));
  gated_tier_.WaitForCopy();
  partitions_.Withdraw(0, PartitionId{0});
  const LeaseEpochs::Mark mark = partitions_.Drop(0, PartitionId{0});
  EXPECT_EQ(ReasonOf(Gather(Request(0, {1}))), ErrorReason::kPartitionNotHere);
  EXPECT_FALSE(partitions_.LeasesEnded(mark));
  gated_tier_.Open();
  under_way->done.Wait();
  EXPECT_THAT(under_way->status, IsOk());
  EXPECT_EQ(under_way->response.rows(), Rows(0, {1}));
  // Its rows are copied before they are sent.
  EXPECT_TRUE(partitions_.LeasesEnded(mark));
}

TEST_F(TableServiceTest, WatchersAreBounded) {
  Start({.max_watchers = 1});
  grpc::ClientContext context;
  SetDeadline(context);
  const auto reader = stub_->WatchPartitions(&context, {});
  v1::WatchPartitionsResponse message;
  ASSERT_TRUE(reader->Read(&message));
  grpc::ClientContext other;
  SetDeadline(other);
  const auto refused = stub_->WatchPartitions(&other, {});
  EXPECT_FALSE(refused->Read(&message));
  EXPECT_EQ(ReasonOf(FromGrpcStatus(refused->Finish())),
            ErrorReason::kOverloaded);
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace engram
