#include "engram_client/rpc/gather_segments.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "core/wire/error_detail.h"

namespace engram {
namespace {

GatherPlan::Part Part(uint32_t partition, uint32_t begin, uint32_t end) {
  return {0, PartitionId{partition}, begin, end};
}

std::vector<GatherSegment> Segments(
    const std::vector<GatherPlan::Part>& parts) {
  std::vector<GatherSegment> segments;
  for (const auto& part : parts) segments.push_back({.part = part});
  return segments;
}

TEST(CutIntoCallsTest, OneCallWhereItFits) {
  const auto calls =
      CutIntoCalls(Segments({Part(0, 0, 4), Part(3, 4, 10)}), 10);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].size(), 2u);
  EXPECT_TRUE(CutIntoCalls({}, 10).empty());
}

TEST(CutIntoCallsTest, EveryRowOnceInOrderAndCallsOfEqualSize) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<GatherPlan::Part> parts;
    uint32_t rows = 0;
    for (uint32_t p = 0; p < 1 + random() % 20; ++p) {
      const uint32_t end = rows + 1 + random() % 50;
      parts.push_back(Part(p, rows, end));
      rows = end;
    }
    const uint64_t max_rows = 1 + random() % 60;
    const auto calls = CutIntoCalls(Segments(parts), max_rows);
    EXPECT_EQ(calls.size(), (rows + max_rows - 1) / max_rows);
    uint32_t next = 0;
    for (const auto& call : calls) {
      uint32_t call_rows = 0;
      for (const GatherSegment& segment : call) {
        ASSERT_EQ(segment.part.begin, next);
        ASSERT_GT(segment.part.rows(), 0u);
        next = segment.part.end;
        call_rows += segment.part.rows();
      }
      ASSERT_LE(call_rows, max_rows);
      ASSERT_LE(call_rows, (rows - 1) / calls.size() + 1);
    }
    ASSERT_EQ(next, rows);
  }
}

TEST(CutIntoCallsTest, EachPieceHasTheSetbacksOfItsOwn) {
  std::vector<GatherSegment> segments = Segments({Part(0, 0, 8)});
  NoteFailure(segments[0], {2, absl::UnavailableError(""), absl::UnixEpoch()});
  auto calls = CutIntoCalls(std::move(segments), 4);
  ASSERT_EQ(calls.size(), 2u);
  NoteFailure(calls[0][0], {2, absl::UnavailableError(""), absl::UnixEpoch()});
  EXPECT_EQ(calls[0][0].setbacks->failures, 2u);
  EXPECT_EQ(calls[1][0].setbacks->failures, 1u);
}

TEST(MayTryAgainTest, OnlyWhatAnotherServerOrTimeCanMend) {
  for (const absl::Status& status :
       {absl::UnavailableError(""), absl::CancelledError(""),
        MakeError(ErrorReason::kOverloaded, ""),
        MakeError(ErrorReason::kDraining, ""),
        MakeError(ErrorReason::kNotReady, ""),
        PartitionNotHereError("a", {}, {}),
        MakeError(ErrorReason::kWrongTable, "")}) {
    EXPECT_EQ(MayTryAgain(status), TryAgain::kAlways) << status;
  }
  for (const absl::Status& status :
       {MakeError(ErrorReason::kTooLarge, ""), absl::UnimplementedError(""),
        absl::PermissionDeniedError(""),
        absl::ResourceExhaustedError("a message too big")}) {
    EXPECT_EQ(MayTryAgain(status), TryAgain::kNever) << status;
  }
}

TEST(MayTryAgainTest, AFewTimesAfterAFault) {
  for (const absl::Status& status :
       {absl::DataLossError(""), absl::InternalError(""),
        absl::UnknownError(""), absl::InvalidArgumentError(""),
        absl::DeadlineExceededError(""),
        MakeError(ErrorReason::kRowOutOfRange, ""),
        MakeError(ErrorReason::kUnknownLayer, "")}) {
    EXPECT_EQ(MayTryAgain(status), TryAgain::kAfterFault) << status;
    GatherSegment segment{.part = Part(0, 0, 1)};
    NoteFailure(segment, {2, status, absl::UnixEpoch()});
    EXPECT_EQ(segment.setbacks->faults, 1u);
  }
  GatherSegment segment{.part = Part(0, 0, 1)};
  NoteFailure(segment, {2, absl::UnavailableError(""), absl::UnixEpoch()});
  EXPECT_EQ(segment.setbacks->faults, 0u);
}

TEST(NeedsTokenTest, NotForWhatOnlyCorrectsTheRouting) {
  EXPECT_FALSE(NeedsToken(PartitionNotHereError("a", {}, {})));
  EXPECT_FALSE(NeedsToken(MakeError(ErrorReason::kDraining, "")));
  EXPECT_TRUE(NeedsToken(MakeError(ErrorReason::kOverloaded, "")));
  EXPECT_TRUE(NeedsToken(absl::UnavailableError("")));
}

TEST(NoteFailureTest, TheFirstFailureMayGoElsewhereAtOnce) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  GatherSegment segment{.part = Part(0, 0, 1)};
  NoteFailure(segment, {2, absl::UnavailableError(""), now});
  EXPECT_EQ(segment.setbacks->avoid, 2u);
  EXPECT_GT(segment.setbacks->avoid_until, now);
  EXPECT_LE(segment.setbacks->hold_until, now);
}

TEST(NoteFailureTest, WithoutATokenTheFirstWaitsToo) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  GatherSegment segment{.part = Part(0, 0, 1)};
  NoteFailure(segment, {2, absl::UnavailableError(""), now, RetryPace::kHeld});
  EXPECT_GE(segment.setbacks->hold_until, now + absl::Milliseconds(5));
  EXPECT_LE(segment.setbacks->hold_until, now + absl::Milliseconds(10));
}

TEST(NoteFailureTest, DelaysGrowAndStayBounded) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  GatherSegment segment{.part = Part(0, 0, 1)};
  for (int i = 0; i < 100; ++i) {
    NoteFailure(segment, {2, absl::UnavailableError(""), now});
  }
  EXPECT_GE(segment.setbacks->hold_until, now + absl::Milliseconds(250));
  EXPECT_LE(segment.setbacks->hold_until, now + absl::Milliseconds(500));
}

TEST(NoteFailureTest, AnOverloadedServerIsObeyed) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  GatherSegment segment{.part = Part(0, 0, 1)};
  NoteFailure(segment,
              {2,
               WithRetryAfter(MakeError(ErrorReason::kOverloaded, "full"),
                              absl::Milliseconds(70)),
               now});
  EXPECT_EQ(segment.setbacks->avoid, 2u);
  EXPECT_EQ(segment.setbacks->avoid_until, now + absl::Milliseconds(70));
  EXPECT_LE(segment.setbacks->hold_until, now);
}

TEST(NoteFailureTest, WhereTwoAreOverloadedBothAreObeyed) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  const auto overloaded = [](absl::Duration retry_after) {
    return WithRetryAfter(MakeError(ErrorReason::kOverloaded, "full"),
                          retry_after);
  };
  GatherSegment segment{.part = Part(0, 0, 1)};
  NoteFailure(segment, {2, overloaded(absl::Seconds(7)), now});
  NoteFailure(segment, {4, overloaded(absl::Seconds(3)), now});
  EXPECT_EQ(segment.setbacks->hold_until, now + absl::Seconds(3));
  EXPECT_EQ(segment.setbacks->avoid, 2u);
  EXPECT_EQ(segment.setbacks->avoid_until, now + absl::Seconds(7));
  NoteFailure(segment,
              {4, overloaded(absl::Seconds(9)), now + absl::Seconds(3)});
  EXPECT_EQ(segment.setbacks->hold_until, now + absl::Seconds(7));
  EXPECT_EQ(segment.setbacks->avoid, 4u);
  EXPECT_EQ(segment.setbacks->avoid_until, now + absl::Seconds(12));
}

TEST(NotePassedOverTest, IsNoFailure) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  GatherSegment segment{.part = Part(0, 0, 1)};
  NotePassedOver(segment,
                 {2,
                  WithRetryAfter(MakeError(ErrorReason::kOverloaded, "full"),
                                 absl::Milliseconds(70)),
                  now});
  EXPECT_EQ(segment.setbacks->failures, 0u);
  EXPECT_EQ(segment.setbacks->avoid, 2u);
  EXPECT_EQ(segment.setbacks->avoid_until, now + absl::Milliseconds(70));
  EXPECT_LE(segment.setbacks->hold_until, now);
}

TEST(PartitionsTextTest, NamesTheFirst) {
  const std::vector<LayerId> layers = {LayerId{14}};
  EXPECT_EQ(PartitionsText({Part(7, 0, 1)}, layers), "layer 14 partition 7");
  EXPECT_EQ(
      PartitionsText(
          {Part(7, 0, 1), Part(5, 1, 2), Part(7, 2, 3), Part(9, 3, 4)}, layers),
      "layer 14 partition 5 and 2 more");
}

}  // namespace
}  // namespace engram
