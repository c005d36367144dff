#include "tests/fault/faulty_table_server/faulty_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/testing/status_matchers.h"

namespace engram::fault {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::HasSubstr;

constexpr size_t kRowBytes = 8;

// Every byte of a row is the row's number. Odd rows have to be fetched; a fetch
// is done by a thread of its own.
class NumberTier final : public RowTier {
 public:
  absl::Status CopyRows(size_t, absl::Span<const RowId> row_ids,
                        absl::Span<std::byte> out,
                        std::vector<uint32_t>& misses) const override {
    for (uint32_t i = 0; i < row_ids.size(); ++i) {
      if (has_cold_rows && row_ids[i] % 2 != 0) {
        misses.push_back(i);
      } else {
        Write(row_ids, out, i);
      }
    }
    return absl::OkStatus();
  }
  void Fetch(RowFetch fetch, OnRows done) const override {
    std::thread([fetch = std::move(fetch), done = std::move(done)]() mutable {
      for (const uint32_t i : fetch.wanted) Write(fetch.row_ids, fetch.out, i);
      done(absl::OkStatus());
    }).detach();
  }
  size_t row_bytes() const override { return kRowBytes; }
  size_t memory_bytes() const override { return 0; }
  size_t huge_page_bytes() const override { return 0; }

  bool has_cold_rows = false;

 private:
  static void Write(absl::Span<const RowId> row_ids, absl::Span<std::byte> out,
                    uint32_t i) {
    std::fill_n(out.begin() + i * kRowBytes, kRowBytes,
                std::byte{static_cast<uint8_t>(row_ids[i])});
  }
};

class FaultyTierTest : public ::testing::Test {
 protected:
  absl::Status Obey(const char* line) {
    return faults_.Obey(Command(line)).status();
  }

  // Bits that are wrong in a copy of `rows` rows; -1: the copy failed.
  int WrongBits(size_t rows) {
    std::vector<RowId> ids(rows);
    for (size_t i = 0; i < rows; ++i) ids[i] = static_cast<RowId>(i % 251);
    std::vector<std::byte> out(rows * kRowBytes);
    std::vector<uint32_t> misses;
    if (!tier_.CopyRows(0, ids, absl::MakeSpan(out), misses).ok()) return -1;
    if (!misses.empty() && !Fetch(ids, out, misses).ok()) return -1;
    int wrong = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      wrong += std::popcount(static_cast<uint8_t>(static_cast<uint8_t>(out[i]) ^
                                                  ids[i / kRowBytes]));
    }
    return wrong;
  }

  absl::Status Fetch(const std::vector<RowId>& ids, std::vector<std::byte>& out,
                     const std::vector<uint32_t>& wanted) {
    const auto status = std::make_shared<std::promise<absl::Status>>();
    tier_.Fetch({.row_ids = ids, .wanted = wanted, .out = absl::MakeSpan(out)},
                [status](absl::Status result) {
                  status->set_value(std::move(result));
                });
    return status->get_future().get();
  }
  void MakeRowsCold() { numbers_->has_cold_rows = true; }

  TierFaults faults_{1};
  NumberTier* const numbers_ = new NumberTier;
  FaultyTier tier_{std::unique_ptr<RowTier>(numbers_), faults_};
};

TEST_F(FaultyTierTest, WithoutFaultsItIsTheOtherTier) {
  EXPECT_EQ(WrongBits(1000), 0);
  EXPECT_EQ(tier_.row_bytes(), kRowBytes);
}

TEST_F(FaultyTierTest, FlipsOneBitOfAShareOfRows) {
  ASSERT_THAT(Obey("flip 0.25"), IsOk());
  const int wrong = WrongBits(4000);
  EXPECT_GT(wrong, 800);
  EXPECT_LT(wrong, 1200);
  ASSERT_THAT(Obey("flip 1"), IsOk());
  EXPECT_EQ(WrongBits(4000), 4000);
  ASSERT_THAT(Obey("clear"), IsOk());
  EXPECT_EQ(WrongBits(4000), 0);
}

TEST_F(FaultyTierTest, FailsAShareOfPieces) {
  ASSERT_THAT(Obey("fail 0.5 INTERNAL"), IsOk());
  int failed = 0;
  for (int i = 0; i < 1000; ++i) failed += WrongBits(1) < 0 ? 1 : 0;
  EXPECT_GT(failed, 400);
  EXPECT_LT(failed, 600);
  std::vector<std::byte> out(kRowBytes);
  ASSERT_THAT(Obey("fail 1 DATA_LOSS"), IsOk());
  std::vector<uint32_t> misses;
  EXPECT_THAT(tier_.CopyRows(0, {1}, absl::MakeSpan(out), misses),
              IsError(absl::StatusCode::kDataLoss, HasSubstr("fault")));
}

TEST_F(FaultyTierTest, SlowTakesAtLeastTheFactorOfAHealthyCall) {
  ASSERT_THAT(Obey("slow 100"), IsOk());
  const absl::Time start = absl::Now();
  EXPECT_EQ(WrongBits(1), 0);
  EXPECT_GE(absl::Now() - start, 100 * TierFaults::kLeastSlowTime);
}

TEST_F(FaultyTierTest, FaultsOfFetchesAreOfNoOtherRows) {
  ASSERT_THAT(Obey("fetch_fail 1 INTERNAL"), IsOk());
  ASSERT_THAT(Obey("fetch_slow 100"), IsOk());
  EXPECT_EQ(WrongBits(100), 0);
  MakeRowsCold();
  EXPECT_EQ(WrongBits(1), 0);
  const absl::Time start = absl::Now();
  EXPECT_EQ(WrongBits(100), -1);
  EXPECT_GE(absl::Now() - start, 100 * TierFaults::kLeastSlowTime);
  std::vector<std::byte> out(kRowBytes);
  EXPECT_THAT(Fetch({1}, out, {0}),
              IsError(absl::StatusCode::kInternal, HasSubstr("disk")));
  ASSERT_THAT(Obey("clear"), IsOk());
  EXPECT_EQ(WrongBits(100), 0);
}

TEST_F(FaultyTierTest, CapacityBoundsTheRowsOfASecond) {
  ASSERT_THAT(Obey("capacity 100000"), IsOk());
  const absl::Time start = absl::Now();
  EXPECT_EQ(WrongBits(2500), 0);
  EXPECT_EQ(WrongBits(2500), 0);
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(50));
}

TEST_F(FaultyTierTest, WhoWaitsIsLetGoWhenFaultsAreLifted) {
  ASSERT_THAT(Obey("slow 1000000"), IsOk());  // 100 s
  std::thread caller([&] { EXPECT_EQ(WrongBits(1), 0); });
  // However early: a copy that begins after it is not slow at all.
  ASSERT_THAT(Obey("clear"), IsOk());
  caller.join();
}

TEST_F(FaultyTierTest, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(Obey("melt 1"),
              IsError(absl::StatusCode::kNotFound, HasSubstr("melt")));
  for (const char* line :
       {"flip", "flip 2", "flip nan", "fail 1 BAD", "slow -1", "fetch_slow",
        "fetch_fail 2 INTERNAL", "capacity x", "clear 1"}) {
    EXPECT_EQ(Obey(line).code(), absl::StatusCode::kInvalidArgument) << line;
  }
  EXPECT_EQ(WrongBits(100), 0);
}

}  // namespace
}  // namespace engram::fault
