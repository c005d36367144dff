#include "table_server/service/heat_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "absl/time/time.h"
#include "core/wire/heat_hash.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/service/service_fixture.h"

namespace engram {
namespace {

using ::engram::test::Eventually;
using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::_;
using ::testing::HasSubstr;

class HeatStreamTest : public test::ServiceFixture {
 protected:
  // A recording under way.
  struct Recording {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::RecordHeatResponse>> reader;
  };
  // What one tells.
  struct Heat {
    absl::Status status;
    std::vector<v1::RecordHeatResponse::Progress> progress;
    v1::RecordHeatResponse::Totals totals;
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> partitions;
    std::map<uint64_t, uint64_t> sample;
    std::map<uint64_t, uint64_t> hot;
  };

  static v1::RecordHeatRequest Request(uint64_t duration_ms,
                                       uint64_t rows = 0) {
    v1::RecordHeatRequest request;
    request.set_duration_ms(duration_ms);
    request.set_max_sampled_rows(rows);
    return request;
  }
  std::unique_ptr<Recording> Open(const v1::RecordHeatRequest& request) {
    auto recording = std::make_unique<Recording>();
    SetDeadline(recording->context);
    recording->reader = stub_->RecordHeat(&recording->context, request);
    return recording;
  }
  // One that has begun.
  std::unique_ptr<Recording> Begin(const v1::RecordHeatRequest& request) {
    auto recording = Open(request);
    v1::RecordHeatResponse first;
    EXPECT_TRUE(recording->reader->Read(&first));
    EXPECT_EQ(first.progress().elapsed_ms(), 0U);
    return recording;
  }
  static Heat ReadAll(Recording& recording) {
    Heat heat;
    v1::RecordHeatResponse message;
    while (recording.reader->Read(&message)) {
      if (message.has_progress()) heat.progress.push_back(message.progress());
      if (message.has_totals()) heat.totals = message.totals();
      const auto& partitions = message.partitions();
      for (int i = 0; i < partitions.lookups_size(); ++i) {
        heat.partitions[{partitions.layer_id(), partitions.first_partition() +
                                                    i}] = partitions.lookups(i);
      }
      AddRows(message.sample(), heat.sample);
      AddRows(message.hot(), heat.hot);
    }
    heat.status = FromGrpcStatus(recording.reader->Finish());
    return heat;
  }
  static void AddRows(const v1::RecordHeatResponse::RowCounts& rows,
                      std::map<uint64_t, uint64_t>& to) {
    for (const auto& counts : rows.layers()) {
      ASSERT_EQ(counts.row_ids_size(), counts.lookups_size());
      for (int i = 0; i < counts.row_ids_size(); ++i) {
        to[HeatKey(LayerId{counts.layer_id()}, counts.row_ids(i))] +=
            counts.lookups(i);
      }
    }
  }
  absl::Status Refused(const v1::RecordHeatRequest& request) {
    return ReadAll(*Open(request)).status;
  }
  // Another recording may begin. The server sees the end of one later than its
  // caller does.
  void ExpectFree() {
    ASSERT_TRUE(Eventually([&] { return service_->Idle(); }));
    EXPECT_EQ(Gauge(metrics_.gauges().heat_recording), 0);
    EXPECT_EQ(Gauge(metrics_.gauges().heat_sampled_rows), 0);
    auto next = Begin(Request(1));
    clock_.Advance(absl::Milliseconds(1));
    EXPECT_THAT(ReadAll(*next).status, IsOk());
  }
};

// By unary gathers, in pieces, and by those of a stream.
TEST_F(HeatStreamTest, TellsWhatWasAskedForMeanwhile) {
  const size_t row_bytes = manifest_.row_format().row_bytes();
  Start({.piece_bytes = 10 * row_bytes});
  ASSERT_THAT(Gather(ServiceFixture::Request(0, {1, 2, 3})), IsOk());
  const auto recording = Begin(Request(2000));
  std::vector<RowId> rows(100);
  std::iota(rows.begin(), rows.end(), 5);
  rows.push_back(7);
  ASSERT_THAT(Gather(ServiceFixture::Request(0, rows)), IsOk());
  v1::GatherRequest both = ServiceFixture::Request(1, {9, 9});
  *both.add_layers() = ServiceFixture::Request(0, {7}).layers(0);
  ASSERT_THAT(Gather(both), IsOk());
  // Fails as a whole: none of it is counted.
  EXPECT_FALSE(Gather(ServiceFixture::Request(0, {1, ~RowId{0}})).ok());
  clock_.Advance(absl::Seconds(2));
  const Heat heat = ReadAll(*recording);
  ASSERT_THAT(heat.status, IsOk());
  EXPECT_EQ(heat.totals.version(), manifest_.version());
  EXPECT_EQ(heat.totals.server_name(), "s1");
  EXPECT_EQ(heat.totals.instance_id(), 99U);
  EXPECT_EQ(heat.totals.elapsed_ms(), 2000U);
  EXPECT_EQ(heat.totals.last_hash(), ~uint64_t{0});
  EXPECT_EQ(heat.totals.lookups_per_hit(), 16U);

  std::map<uint64_t, uint64_t> wanted;
  for (const RowId row : rows) ++wanted[HeatKey(layer(0), row)];
  ++wanted[HeatKey(layer(0), 7)];
  wanted[HeatKey(layer(1), 9)] = 2;
  EXPECT_EQ(heat.sample, wanted);
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> partitions;
  for (size_t i = 0; i < manifest_.layers().size(); ++i) {
    for (uint32_t p = 0; p < manifest_.partition_count(i); ++p) {
      partitions[{ToInt(layer(i)), p}] = 0;
    }
  }
  for (const auto& [key, lookups] : wanted) {
    partitions[{ToInt(LayerOfHeatKey(key)),
                RowOfHeatKey(key) / manifest_.partition_rows()}] += lookups;
  }
  EXPECT_EQ(heat.partitions, partitions);
  for (const auto& [key, lookups] : heat.hot) {
    EXPECT_TRUE(wanted.contains(key));
    EXPECT_EQ(lookups % 16, 0U);
  }
  ExpectFree();
}

TEST_F(HeatStreamTest, TellsHowFarItIs) {
  Start();
  const auto recording = Begin(Request(10'000));
  ASSERT_THAT(Gather(ServiceFixture::Request(0, {1, 2, 2})), IsOk());
  clock_.Advance(absl::Seconds(4));
  v1::RecordHeatResponse message;
  ASSERT_TRUE(recording->reader->Read(&message));
  EXPECT_EQ(message.progress().elapsed_ms(), 4000U);
  EXPECT_EQ(message.progress().lookups(), 3U);
  EXPECT_EQ(message.progress().sampled_rows(), 2U);
  EXPECT_EQ(Gauge(metrics_.gauges().heat_recording), 1);
  EXPECT_EQ(Gauge(metrics_.gauges().heat_sampled_rows), 2);
  EXPECT_EQ(Gauge(metrics_.gauges().heat_sampled_rows_limit), 65536);
  EXPECT_FALSE(service_->Idle());
}

TEST_F(HeatStreamTest, ASmallSampleIsWholeUpToItsLastHash) {
  Start();
  const auto recording = Begin(Request(1000, 64));
  std::vector<RowId> rows(5000);
  std::iota(rows.begin(), rows.end(), 0);
  ASSERT_THAT(Gather(ServiceFixture::Request(0, rows)), IsOk());
  clock_.Advance(absl::Seconds(1));
  const Heat heat = ReadAll(*recording);
  ASSERT_THAT(heat.status, IsOk());
  std::map<uint64_t, uint64_t> wanted;
  for (const RowId row : rows) {
    const uint64_t key = HeatKey(layer(0), row);
    if (HeatHash(key) <= heat.totals.last_hash()) wanted[key] = 1;
  }
  EXPECT_LE(wanted.size(), 64U);
  EXPECT_GT(wanted.size(), 0U);
  EXPECT_EQ(heat.sample, wanted);
}

TEST_F(HeatStreamTest, SaysWhatIsWrong) {
  Start();
  EXPECT_THAT(
      Refused(Request(0)),
      IsError(absl::StatusCode::kInvalidArgument,
              HasSubstr("duration_ms is 0, the limits are 1 and 3600000")));
  EXPECT_THAT(Refused(Request(3'600'001)),
              IsError(absl::StatusCode::kInvalidArgument, _));
  EXPECT_THAT(Refused(Request(1, 63)),
              IsError(absl::StatusCode::kInvalidArgument,
                      HasSubstr("max_sampled_rows is 63")));
  EXPECT_THAT(Refused(Request(1, (1 << 20) + 1)),
              IsError(absl::StatusCode::kInvalidArgument, _));
  v1::RecordHeatRequest request = Request(1);
  request.set_version("other");
  EXPECT_EQ(ReasonOf(Refused(request)), ErrorReason::kWrongTable);
  ExpectFree();
}

TEST_F(HeatStreamTest, OneAtATime) {
  Start();
  const auto first = Begin(Request(1000));
  const absl::Status refused = Refused(Request(1000));
  EXPECT_EQ(ReasonOf(refused), ErrorReason::kOverloaded);
  EXPECT_EQ(RetryAfterOf(refused), absl::Seconds(1));
  ASSERT_THAT(Gather(ServiceFixture::Request(0, {1})), IsOk());
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(ReadAll(*first).sample.size(), 1U);
  // At once, although the server may not have seen the end of the first call.
  const auto second = Begin(Request(1));
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(ReadAll(*second).status, IsOk());
}

TEST_F(HeatStreamTest, CallsAreBounded) {
  Start({.max_heat_streams = 1});
  const auto first = Begin(Request(1000));
  EXPECT_THAT(Refused(Request(1000)),
              IsError(absl::StatusCode::kResourceExhausted,
                      HasSubstr("the limit of 1 recordings")));
  EXPECT_EQ(Gauge(metrics_.gauges().heat_streams), 1);
  EXPECT_EQ(Gauge(metrics_.gauges().heat_streams_limit), 1);
}

TEST_F(HeatStreamTest, ACallerThatGoesEndsTheRecording) {
  Start();
  const auto recording = Begin(Request(3'600'000));
  recording->context.TryCancel();
  EXPECT_THAT(ReadAll(*recording).status,
              IsError(absl::StatusCode::kCancelled, _));
  ExpectFree();
}

TEST_F(HeatStreamTest, ACallerThatTakesNothingEndsTheRecording) {
  Start();
  FixWindow();
  const auto recording = Begin(Request(1000));
  for (size_t i = 0; i < manifest_.layers().size(); ++i) {
    std::vector<RowId> rows(manifest_.layers()[i].row_count);
    std::iota(rows.begin(), rows.end(), 0);
    ASSERT_THAT(Gather(ServiceFixture::Request(i, rows)), IsOk());
  }
  clock_.Advance(absl::Seconds(1));
  WaitFor(metrics_.gauges().heat_recording, 0);
  EXPECT_FALSE(service_->Idle());
  ASSERT_TRUE(Eventually([&] {
    clock_.Advance(absl::Minutes(2));
    return service_->Idle();
  }));
  EXPECT_THAT(ReadAll(*recording).status,
              IsError(absl::StatusCode::kCancelled, _));
}

TEST_F(HeatStreamTest, EndsWhenTheServerDrains) {
  Start();
  const auto recording = Begin(Request(3'600'000));
  service_->StopAccepting();
  EXPECT_EQ(ReasonOf(ReadAll(*recording).status), ErrorReason::kDraining);
  EXPECT_EQ(ReasonOf(Refused(Request(1))), ErrorReason::kDraining);
}

}  // namespace
}  // namespace engram
