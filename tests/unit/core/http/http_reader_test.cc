#include "core/http/http_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "core/http/scripted_http_transport.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kUrl[] = "https://hub.example/model.safetensors";
constexpr uint64_t kFileBytes = 100'000;
constexpr ByteRange kWanted{1000, 91'000};

class HttpReaderTest : public ::testing::Test {
 protected:
  HttpReaderTest() {
    std::string file(kFileBytes, '\0');
    for (size_t i = 0; i < file.size(); ++i) {
      file[i] = static_cast<char>(i * 7 + i / 251);
    }
    auto transport = std::make_unique<ScriptedHttpTransport>();
    server_ = transport.get();
    server_->files[kUrl] = std::move(file);
    transport_ = std::move(transport);
  }

  void Start(std::unique_ptr<BearerToken> token = nullptr) {
    reader_ = std::make_unique<HttpReader>(
        std::move(transport_), std::move(token),
        HttpReader::Options{
            .max_attempts = 4,
            .min_progress_bytes = 5000,
            .sleep = [this](absl::Duration time) { slept_ += time; }});
  }

  absl::Status Read(uint64_t file_bytes = 0) {
    if (reader_ == nullptr) Start();
    got_.assign(kWanted.size(), '?');
    return reader_
        ->ReadRange(
            {kUrl, kWanted, file_bytes},
            [this](uint64_t offset, absl::Span<const std::byte> bytes) {
              std::memcpy(&got_.at(offset), bytes.data(), bytes.size());
              return take_status_;
            },
            [this] {
              ++waits_;
              return wait_status_;
            })
        .status();
  }
  bool GotAll() const {
    return got_ ==
           server_->files.at(kUrl).substr(kWanted.begin, kWanted.size());
  }
  uint64_t Failures(HttpFailure why) const {
    return reader_->counts().failures[static_cast<size_t>(why)];
  }

  std::unique_ptr<HttpTransport> transport_;
  ScriptedHttpTransport* server_ = nullptr;
  std::unique_ptr<HttpReader> reader_;
  absl::Duration slept_;
  std::string got_;
  absl::Status take_status_;
  absl::Status wait_status_;
  int waits_ = 0;
};

ScriptedHttpTransport::Step CutAfter(size_t bytes) {
  return {.cut_after_bytes = bytes,
          .ending = absl::UnavailableError("connection reset")};
}

TEST_F(HttpReaderTest, OneRequestWhenNothingBreaks) {
  ASSERT_THAT(Read(kFileBytes), IsOk());
  EXPECT_TRUE(GotAll());
  ASSERT_EQ(server_->requests().size(), 1U);
  EXPECT_EQ(server_->requests()[0].range, kWanted);
  const HttpCounts counts = reader_->counts();
  EXPECT_EQ(counts.requests, 1U);
  EXPECT_EQ(counts.received_bytes, kWanted.size());
  EXPECT_EQ(counts.retries, 0U);
  EXPECT_EQ(slept_, absl::ZeroDuration());
}

TEST_F(HttpReaderTest, GoesOnWhereAConnectionBroke) {
  server_->Then(CutAfter(7000));
  server_->Then(CutAfter(0));
  server_->Then(CutAfter(12'345));
  ASSERT_THAT(Read(), IsOk());
  EXPECT_TRUE(GotAll());
  const auto requests = server_->requests();
  ASSERT_EQ(requests.size(), 4U);
  EXPECT_EQ(requests[1].range, (ByteRange{8000, 91'000}));
  EXPECT_EQ(requests[2].range, (ByteRange{8000, 91'000}));
  EXPECT_EQ(requests[3].range, (ByteRange{20'345, 91'000}));
  EXPECT_EQ(reader_->counts().received_bytes, kWanted.size());
  EXPECT_EQ(reader_->counts().retries, 3U);
  EXPECT_EQ(Failures(HttpFailure::kConnection), 3U);
}

TEST_F(HttpReaderTest, AShortAnswerIsABeginning) {
  server_->Then({.cut_after_bytes = 50'000});  // and a good end
  ASSERT_THAT(Read(), IsOk());
  EXPECT_TRUE(GotAll());
  EXPECT_EQ(server_->requests()[1].range, (ByteRange{51'000, 91'000}));
}

TEST_F(HttpReaderTest, ABreakAfterTheLastByteIsNone) {
  server_->Then(CutAfter(kWanted.size()));
  ASSERT_THAT(Read(), IsOk());
  EXPECT_TRUE(GotAll());
  EXPECT_EQ(server_->requests().size(), 1U);
}

TEST_F(HttpReaderTest, AttemptsWithoutProgressAreBounded) {
  for (int i = 0; i < 10; ++i) server_->Then(CutAfter(100));
  EXPECT_THAT(Read(),
              IsError(absl::StatusCode::kUnavailable,
                      AllOf(HasSubstr(kUrl), HasSubstr("connection reset"))));
  EXPECT_EQ(server_->requests().size(), 4U);
  // 200, 400, 800 ms, of each at least half.
  EXPECT_GE(slept_, absl::Milliseconds(700));
  EXPECT_LE(slept_, absl::Milliseconds(1400));
}

TEST_F(HttpReaderTest, AttemptsWithProgressGoOn) {
  for (int i = 0; i < 12; ++i) server_->Then(CutAfter(6000));
  ASSERT_THAT(Read(), IsOk());
  EXPECT_TRUE(GotAll());
  EXPECT_EQ(server_->requests().size(), 13U);
}

TEST_F(HttpReaderTest, RetryAfterIsHonouredWithinABound) {
  server_->Then({.change = [](HttpHead& head) {
    head = {.status = 503, .retry_after = absl::Seconds(7)};
  }});
  ASSERT_THAT(Read(), IsOk());
  EXPECT_EQ(slept_, absl::Seconds(7));
  EXPECT_EQ(Failures(HttpFailure::kBusy), 1U);
  server_->Then({.change = [](HttpHead& head) {
    head = {.status = 429, .retry_after = absl::Hours(24)};
  }});
  ASSERT_THAT(Read(), IsOk());
  EXPECT_EQ(slept_, absl::Seconds(7) + absl::Minutes(1));
}

TEST_F(HttpReaderTest, RefusalsAreNamedAndNotRepeated) {
  const std::pair<int, absl::StatusCode> kCases[] = {
      {400, absl::StatusCode::kFailedPrecondition},
      {401, absl::StatusCode::kPermissionDenied},
      {403, absl::StatusCode::kPermissionDenied},
      {404, absl::StatusCode::kNotFound},
      {416, absl::StatusCode::kDataLoss},
      {304, absl::StatusCode::kFailedPrecondition}};
  size_t requests = 0;
  for (const auto& [status, code] : kCases) {
    server_->ThenStatus(status);
    EXPECT_THAT(Read(), IsError(code, AllOf(HasSubstr(absl::StrCat(status)),
                                            HasSubstr(kUrl))));
    EXPECT_EQ(server_->requests().size(), ++requests);
  }
}

TEST_F(HttpReaderTest, AServerThatIgnoresRangesIsRefused) {
  server_->ThenStatus(200);
  EXPECT_THAT(Read(), IsError(absl::StatusCode::kFailedPrecondition,
                              HasSubstr("ignores ranges")));
  EXPECT_EQ(reader_->counts().received_bytes, 0U);
  EXPECT_EQ(Failures(HttpFailure::kNoRanges), 1U);
}

TEST_F(HttpReaderTest, AnotherRangeIsNotTaken) {
  for (const char* text : {"bytes 0-89999/100000", "bytes 1000-91000/100000",
                           "bytes 1000-90999/*", ""}) {
    server_->Then(
        {.change = [text](HttpHead& head) { head.content_range = text; }});
    ASSERT_THAT(Read(), IsOk()) << text;
    EXPECT_TRUE(GotAll()) << text;
  }
  EXPECT_EQ(Failures(HttpFailure::kWrongRange), 4U);
  EXPECT_EQ(reader_->counts().received_bytes, 4 * kWanted.size());
}

TEST_F(HttpReaderTest, AFileOfAnotherSizeIsRefused) {
  EXPECT_THAT(Read(kFileBytes + 1),
              IsError(absl::StatusCode::kDataLoss,
                      AllOf(HasSubstr("100000"), HasSubstr("100001"))));
}

TEST_F(HttpReaderTest, TwoStatesOfAFileAreNotJoined) {
  server_->Then(CutAfter(30'000));
  server_->Then({.change = [](HttpHead& head) { head.etag = "\"b\""; }});
  server_->Then({.change = [](HttpHead& head) { head.etag = "\"b\""; }});
  ASSERT_THAT(Read(), IsOk());
  EXPECT_TRUE(GotAll());
  EXPECT_EQ(server_->requests().back().range, kWanted);
  EXPECT_EQ(reader_->counts().received_bytes, 30'000 + kWanted.size());
}

TEST_F(HttpReaderTest, AFileThatGoesOnChangingIsLeftForLater) {
  for (const char* etag : {"1", "2", "3", "4", "5"}) {
    ScriptedHttpTransport::Step step = CutAfter(30'000);
    step.change = [etag](HttpHead& head) { head.etag = etag; };
    server_->Then(std::move(step));
  }
  EXPECT_THAT(Read(),
              IsError(absl::StatusCode::kUnavailable, HasSubstr("changes")));
}

TEST_F(HttpReaderTest, MoreThanWasAskedForIsRefused) {
  server_->Then({.extra_bytes = 1});
  EXPECT_THAT(Read(), IsError(absl::StatusCode::kDataLoss, HasSubstr("more")));
  EXPECT_THAT(reader_->ReadFile(kUrl, 5000, [] { return absl::OkStatus(); }),
              IsError(absl::StatusCode::kInvalidArgument, HasSubstr("5000")));
}

TEST_F(HttpReaderTest, TheTakersErrorEndsTheRead) {
  take_status_ = absl::CancelledError("stopped");
  EXPECT_THAT(Read(),
              IsError(absl::StatusCode::kCancelled, HasSubstr("stopped")));
  EXPECT_EQ(server_->requests().size(), 1U);
}

TEST_F(HttpReaderTest, TheWaitersErrorEndsAPause) {
  server_->Then({.change = [this](HttpHead& head) {
    head = {.status = 503, .retry_after = absl::Seconds(30)};
    wait_status_ = absl::CancelledError("stopped");
  }});
  EXPECT_THAT(Read(),
              IsError(absl::StatusCode::kCancelled, HasSubstr("stopped")));
  EXPECT_EQ(server_->requests().size(), 1U);
  EXPECT_LT(slept_, absl::Seconds(1));
}

TEST_F(HttpReaderTest, StallsAreTriedAgainAndCounted) {
  server_->Then({.cut_after_bytes = 6000,
                 .ending = absl::DeadlineExceededError("0 bytes came")});
  ASSERT_THAT(Read(), IsOk());
  EXPECT_TRUE(GotAll());
  EXPECT_EQ(Failures(HttpFailure::kStalled), 1U);
}

TEST_F(HttpReaderTest, WhatTryingAgainDoesNotChangeIsNotTriedAgain) {
  server_->Then({.cut_after_bytes = 0,
                 .ending = absl::FailedPreconditionError("certificate")});
  EXPECT_THAT(Read(), IsError(absl::StatusCode::kFailedPrecondition,
                              HasSubstr("certificate")));
  EXPECT_EQ(server_->requests().size(), 1U);
}

TEST_F(HttpReaderTest, ARotatedTokenIsTriedAtOnce) {
  const test::TempDir dir;
  const std::string path = dir.Write("token", "old");
  Start(*BearerToken::Open(path));
  server_->Then({.change = [&](HttpHead& head) {
    head = {.status = 401};
    dir.Write("token", "new_one");
  }});
  ASSERT_THAT(Read(), IsOk());
  EXPECT_EQ(server_->requests()[0].bearer_token, "old");
  EXPECT_EQ(server_->requests()[1].bearer_token, "new_one");
  server_->ThenStatus(401);
  EXPECT_THAT(Read(),
              IsError(absl::StatusCode::kPermissionDenied, HasSubstr("token")));
  EXPECT_EQ(server_->requests().size(), 3U);
}

TEST_F(HttpReaderTest, WholeFilesBeginAnewWhenTheyBreak) {
  Start();
  server_->Then(CutAfter(40'000));
  const auto content =
      reader_->ReadFile(kUrl, kFileBytes, [] { return absl::OkStatus(); });
  ASSERT_THAT(content, IsOk());
  EXPECT_EQ(*content, server_->files.at(kUrl));
  EXPECT_EQ(server_->requests()[1].range, std::nullopt);
}

}  // namespace
}  // namespace engram
