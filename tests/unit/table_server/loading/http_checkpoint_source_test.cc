#include "table_server/loading/http_checkpoint_source.h"

#include <prometheus/registry.h>

#include <algorithm>
#include <map>
#include <thread>
#include <vector>

#include "table_server/loading/checkpoint_source.h"
#include "table_server/loading/column_scatter.h"
#include "table_server/loading/http_load_metrics.h"
#include "tests/testing/metric_values.h"
#include "tests/unit/table_server/loading/http_fixture.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Reads partitions over HTTP and compares them with the files.
class HttpCheckpointSourceTest : public test::HttpLoadingTest {
 protected:
  HttpCheckpointSourceTest() {
    auto files = OpenCheckpointSource(dir_.path());
    ENGRAM_CHECK(files.ok());
    files_ = std::make_unique<TableSource>(*std::move(files));
    auto layers = FindHttpLayers(*reader_, folder_, manifest(), test::GoOn);
    ENGRAM_CHECK(layers.ok());
    table_ = {folder_.url, std::move(reader_), *std::move(layers)};
    source_ =
        std::make_unique<HttpCheckpointSource>(table_, manifest(), clock_);
  }

  const Manifest& manifest() const { return files_->manifest; }

  absl::Status Read(const PartitionRef& ref) {
    const size_t layer_index = *manifest().IndexOf(ref.layer);
    got_.assign(manifest().RowsIn(layer_index, ref.partition) *
                    manifest().row_format().row_bytes(),
                std::byte{0xEE});
    told_bytes_ = 0;
    return source_->Read(ref, absl::MakeSpan(got_), [&](size_t bytes) {
      told_bytes_ += bytes;
      // What is told of is there.
      const std::vector<std::byte> wanted = Wanted(ref);
      EXPECT_TRUE(std::equal(got_.begin(),
                             got_.begin() + static_cast<ptrdiff_t>(told_bytes_),
                             wanted.begin()));
      return status_;
    });
  }

  std::vector<std::byte> Wanted(const PartitionRef& ref) {
    const size_t layer_index = *manifest().IndexOf(ref.layer);
    std::vector<std::byte> rows(manifest().RowsIn(layer_index, ref.partition) *
                                manifest().row_format().row_bytes());
    CheckpointSource source(*files_->checkpoint, manifest());
    EXPECT_THAT(source.Read(ref, absl::MakeSpan(rows),
                            [](size_t) { return absl::OkStatus(); }),
                IsOk());
    return rows;
  }

  FakeClock clock_{absl::UnixEpoch()};
  std::unique_ptr<TableSource> files_;
  HttpTable table_;
  std::unique_ptr<HttpCheckpointSource> source_;
  std::vector<std::byte> got_;
  size_t told_bytes_ = 0;
  absl::Status status_;
};

constexpr PartitionRef kFirst{LayerId{1}, PartitionId{0}};

TEST_F(HttpCheckpointSourceTest, AServerThatIsNotThereIsLeftAlone) {
  for (int i = 0; i < 3; ++i) server_->ThenStatus(503);
  const auto is_unavailable =
      IsError(absl::StatusCode::kUnavailable, HasSubstr("503"));
  EXPECT_THAT(Read(kFirst), is_unavailable);
  const size_t requests = server_->requests().size();
  EXPECT_THAT(Read(kFirst), is_unavailable);
  EXPECT_EQ(server_->requests().size(), requests);  // was not asked
  clock_.Advance(absl::Seconds(10));
  EXPECT_THAT(Read(kFirst), IsOk());
}

TEST_F(HttpCheckpointSourceTest, GivesWhatTheFilesHave) {
  server_->piece_bytes = 333;  // cuts rows
  const PartitionRef last{LayerId{14},
                          PartitionId{manifest().partition_count(1) - 1}};
  for (const PartitionRef& ref :
       {kFirst, PartitionRef{LayerId{1}, PartitionId{5}}, last}) {
    const uint64_t before = table_.reader->counts().received_bytes;
    ASSERT_THAT(Read(ref), IsOk());
    EXPECT_EQ(got_, Wanted(ref));
    EXPECT_EQ(told_bytes_, got_.size());
    // Not a byte of another partition.
    EXPECT_EQ(table_.reader->counts().received_bytes - before, got_.size());
  }
  EXPECT_EQ(source_->description(), folder_.url);
}

TEST_F(HttpCheckpointSourceTest, ABreakIsMadeGood) {
  server_->Then(
      {.cut_after_bytes = 101, .ending = absl::UnavailableError("reset")});
  server_->Then({});
  server_->Then(
      {.cut_after_bytes = 777, .ending = absl::UnavailableError("reset")});
  ASSERT_THAT(Read(kFirst), IsOk());
  EXPECT_EQ(got_, Wanted(kFirst));
  EXPECT_EQ(told_bytes_, got_.size());
}

TEST_F(HttpCheckpointSourceTest, AChangeMeanwhileTellsNoByteTwice) {
  server_->Then({});
  server_->Then(
      {.cut_after_bytes = 3000, .ending = absl::UnavailableError("reset")});
  for (int i = 0; i < 2; ++i) {
    server_->Then({.change = [](HttpHead& head) { head.etag = "\"b\""; }});
  }
  ASSERT_THAT(Read(kFirst), IsOk());
  EXPECT_EQ(got_, Wanted(kFirst));
  EXPECT_EQ(told_bytes_, got_.size());
}

TEST_F(HttpCheckpointSourceTest, AStopEndsIt) {
  status_ = absl::CancelledError("stopped");
  const uint64_t before = table_.reader->counts().received_bytes;
  EXPECT_THAT(Read(kFirst),
              IsError(absl::StatusCode::kCancelled, HasSubstr("stopped")));
  EXPECT_EQ(table_.reader->counts().received_bytes, before);
}

TEST_F(HttpCheckpointSourceTest, AFileOfAnotherSizeIsRefused) {
  const std::string& url = table_.layers[0].codes.range.url;
  server_->files.at(url).push_back('x');
  EXPECT_THAT(Read(kFirst),
              IsError(absl::StatusCode::kDataLoss,
                      AllOf(HasSubstr(url), HasSubstr("changed"))));
}

TEST_F(HttpCheckpointSourceTest, ManyThreadsAtATime) {
  std::vector<std::thread> threads;
  for (uint32_t p = 0; p < 8; ++p) {
    threads.emplace_back([&, p] {
      const PartitionRef ref{LayerId{1}, PartitionId{p}};
      std::vector<std::byte> rows(manifest().partition_rows() *
                                  manifest().row_format().row_bytes());
      ASSERT_THAT(source_->Read(ref, absl::MakeSpan(rows),
                                [](size_t) { return absl::OkStatus(); }),
                  IsOk());
      EXPECT_EQ(rows, Wanted(ref));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ColumnScatterTest, PiecesMayBeCutAnywhere) {
  constexpr size_t kRows = 5;
  constexpr size_t kWidth = 7;
  constexpr size_t kStride = 10;
  std::vector<std::byte> column(kRows * kWidth);
  for (size_t i = 0; i < column.size(); ++i) column[i] = std::byte(i + 1);
  for (size_t piece = 1; piece <= column.size(); ++piece) {
    std::vector<std::byte> rows(kRows * kStride);
    ColumnScatter scatter(absl::MakeSpan(rows), kStride, 2, kWidth);
    for (size_t at = 0; at < column.size(); at += piece) {
      scatter.Put(at, absl::MakeConstSpan(column).subspan(at, piece));
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t in_row = i % kStride;
      const bool of_column = in_row >= 2 && in_row < 2 + kWidth;
      EXPECT_EQ(rows[i], of_column ? column[i / kStride * kWidth + in_row - 2]
                                   : std::byte{0})
          << piece << " " << i;
    }
  }
}

TEST(HttpLoadMetricsTest, CountersFollowTheCounts) {
  auto registry = std::make_shared<prometheus::Registry>();
  HttpLoadMetrics metrics(registry);
  HttpCounts counts{.requests = 5, .received_bytes = 1000, .retries = 2};
  counts.failures[static_cast<size_t>(HttpFailure::kStalled)] = 2;
  metrics.Update(counts);
  counts.requests = 7;
  metrics.Update(counts);
  metrics.Update({});
  const auto values = test::MetricValues(*registry);
  EXPECT_EQ(values.at("engram_table_http_requests_total{}"), 7);
  EXPECT_EQ(values.at("engram_table_http_received_bytes_total{}"), 1000);
  EXPECT_EQ(values.at("engram_table_http_retries_total{}"), 2);
  EXPECT_EQ(values.at("engram_table_http_failures_total{reason=stalled,}"), 2);
  EXPECT_EQ(values.at("engram_table_http_failures_total{reason=busy,}"), 0);
  EXPECT_EQ(values.size(), 3 + kHttpFailureCount);
}

}  // namespace
}  // namespace engram
