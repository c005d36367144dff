#include "table_server/peers/peer_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/wire/error_detail.h"
#include "table_server/peers/fake_peer_calls.h"
#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kRowBytes = 10;
constexpr PartitionRef kRef{LayerId{1}, PartitionId{7}};

class PeerSourceTest : public ::testing::Test {
 protected:
  PeerSourceTest() {
    for (size_t i = 0; i < 20 * kRowBytes; ++i) {
      rows_.push_back(static_cast<char>(i * 7));
    }
  }

  // Sends `rows` from the offset on, three rows at a time, then `status`.
  FakePeerCalls::Peer Sends(const std::string& name, const std::string& rows,
                            const absl::Status& status = absl::OkStatus()) {
    return {.fetch = [=, this](const PeerCalls::Fetch& fetch,
                               PeerCalls::FetchSink sink) {
      asked_.push_back(name);
      offsets_.push_back(fetch.offset_bytes);
      EXPECT_EQ(fetch.version, "v1");
      EXPECT_EQ(fetch.ref, kRef);
      for (size_t at = fetch.offset_bytes; at < rows.size();
           at += 3 * kRowBytes) {
        const size_t size = std::min(3 * kRowBytes, rows.size() - at);
        absl::Status taken =
            sink({reinterpret_cast<const std::byte*>(rows.data()) + at, size});
        if (!taken.ok()) return taken;
      }
      return status;
    }};
  }
  void Add(const std::string& name, FakePeerCalls::Peer peer) {
    holders_.push_back({name, "address of " + name});
    calls_.Set("address of " + name, std::move(peer));
  }
  PeerSource MakeSource(PeerSource::Options options = {}) {
    options.version = "v1";
    options.row_bytes = kRowBytes;
    return PeerSource(
        calls_, [this](const PartitionRef&) { return holders_; }, options);
  }
  absl::Status Read(PeerSource& source) {
    out_.assign(rows_.size(), '\xEE');
    told_ = 0;
    return source.Read(
        kRef,
        absl::MakeSpan(reinterpret_cast<std::byte*>(out_.data()), out_.size()),
        [this](size_t bytes) {
          told_ += bytes;
          return on_bytes_;
        });
  }

  std::string rows_;
  FakePeerCalls calls_;
  std::vector<PartitionHolder> holders_;
  std::vector<std::string> asked_;
  std::vector<uint64_t> offsets_;
  std::string out_;
  size_t told_ = 0;
  absl::Status on_bytes_;
};

TEST_F(PeerSourceTest, ReadsAPartition) {
  Add("a", Sends("a", rows_));
  PeerSource source = MakeSource();
  ASSERT_THAT(Read(source), IsOk());
  EXPECT_EQ(out_, rows_);
  EXPECT_EQ(told_, rows_.size());
}

TEST_F(PeerSourceTest, SaysWhenNobodyHoldsIt) {
  PeerSource source = MakeSource();
  EXPECT_THAT(Read(source), IsError(absl::StatusCode::kNotFound, _));
}

TEST_F(PeerSourceTest, SpreadsOverTheHolders) {
  for (const char* name : {"a", "b", "c"}) Add(name, Sends(name, rows_));
  PeerSource source = MakeSource();
  for (int i = 0; i < 300; ++i) ASSERT_THAT(Read(source), IsOk());
  std::map<std::string, int> times;
  for (const std::string& name : asked_) ++times[name];
  ASSERT_EQ(times.size(), 3U);
  for (const auto& [name, count] : times) EXPECT_GT(count, 60) << name;
}

TEST_F(PeerSourceTest, GoesOnElsewhereFromWhereItWas) {
  const std::string part = rows_.substr(0, 7 * kRowBytes + 3);  // within a row
  Add("a", Sends("a", part, absl::UnavailableError("broken")));
  Add("b", Sends("b", part, absl::UnavailableError("broken")));
  Add("c", Sends("c", rows_));
  PeerSource source = MakeSource();
  std::set<uint64_t> offsets;
  for (int i = 0; i < 50; ++i) {
    offsets_.clear();
    ASSERT_THAT(Read(source), IsOk());
    ASSERT_EQ(out_, rows_);
    EXPECT_EQ(told_, rows_.size());  // none twice
    offsets.insert(offsets_.begin(), offsets_.end());
  }
  EXPECT_THAT(offsets, ElementsAre(0, 7 * kRowBytes));
}

TEST_F(PeerSourceTest, NamesThePeerThatFailed) {
  Add("a", Sends("a", "", absl::FailedPreconditionError("no such table")));
  PeerSource source = MakeSource();
  EXPECT_THAT(Read(source),
              IsError(absl::StatusCode::kUnavailable,
                      AllOf(HasSubstr("server a"), HasSubstr("no such table"),
                            HasSubstr("FAILED_PRECONDITION"))));
  holders_.push_back({"gone", "nowhere"});
  EXPECT_THAT(Read(source), IsError(absl::StatusCode::kUnavailable, _));
}

TEST_F(PeerSourceTest, WrongSizesAreDataLoss) {
  Add("long", Sends("long", rows_ + rows_));
  PeerSource source = MakeSource();
  EXPECT_THAT(Read(source),
              IsError(absl::StatusCode::kDataLoss,
                      AllOf(HasSubstr("server long"), HasSubstr("200"))));
  holders_.clear();
  Add("short", Sends("short", rows_.substr(0, 60)));
  EXPECT_THAT(Read(source), IsError(absl::StatusCode::kDataLoss,
                                    HasSubstr("60 of 200 bytes")));
  // Another that has the rows makes it good.
  Add("good", Sends("good", rows_));
  for (int i = 0; i < 20; ++i) {
    ASSERT_THAT(Read(source), IsOk());
    EXPECT_EQ(out_, rows_);
  }
}

TEST_F(PeerSourceTest, WaitsForTheBusy) {
  const absl::Status busy = WithRetryAfter(
      MakeError(ErrorReason::kOverloaded, "4 fetches"), absl::Milliseconds(1));
  int left = 2;
  Add("a",
      {.fetch = [&](const PeerCalls::Fetch& fetch, PeerCalls::FetchSink sink) {
        if (left-- > 0) return absl::Status(busy);
        return Sends("a", rows_).fetch(fetch, sink);
      }});
  PeerSource source = MakeSource();
  ASSERT_THAT(Read(source), IsOk());
  EXPECT_EQ(out_, rows_);
  left = 1 << 20;
  PeerSource impatient = MakeSource({.busy_timeout = absl::ZeroDuration()});
  EXPECT_THAT(Read(impatient),
              IsError(absl::StatusCode::kUnavailable, HasSubstr("4 fetches")));
}

TEST_F(PeerSourceTest, TheTakersErrorEndsIt) {
  Add("a", Sends("a", rows_));
  Add("b", Sends("b", rows_));
  on_bytes_ = absl::AbortedError("enough");
  PeerSource source = MakeSource();
  EXPECT_THAT(Read(source), IsError(absl::StatusCode::kAborted, "enough"));
  EXPECT_EQ(asked_.size(), 1U);
}

TEST_F(PeerSourceTest, EndsWhenItIsToStop) {
  std::atomic<bool> stop{false};
  Add("a", {.fetch = [&](const PeerCalls::Fetch& fetch, PeerCalls::FetchSink) {
        EXPECT_EQ(fetch.stop, &stop);
        stop.store(true);
        return WithRetryAfter(MakeError(ErrorReason::kOverloaded, ""),
                              absl::Hours(1));
      }});
  PeerSource source = MakeSource({.stop = &stop});
  EXPECT_THAT(Read(source), IsError(absl::StatusCode::kCancelled, _));
}

}  // namespace
}  // namespace engram
