#include "core/wire/gather_request.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "engram/v1/table.pb.h"

namespace engram {
namespace {

std::string AsText(const ShortMessage& message) {
  return std::string(reinterpret_cast<const char*>(message.bytes.data()),
                     message.size);
}

std::string GatherField(absl::string_view version,
                        absl::Span<const RowRun> runs, bool want_crc32c) {
  std::string field(GatherFieldSize(version, runs, want_crc32c), '\0');
  WriteGatherField(version, runs, want_crc32c,
                   {reinterpret_cast<std::byte*>(field.data()), field.size()});
  return field;
}

TEST(GatherRequestTest, IsWhatProtobufReads) {
  std::vector<RowId> many(40000);
  for (size_t i = 0; i < many.size(); ++i) {
    many[i] = static_cast<RowId>(i * 2654435761U);
  }
  const absl::Span<const RowId> ids(many);
  const std::vector<RowRun> runs = {{LayerId{1}, ids.subspan(0, 1)},
                                    {LayerId{1}, ids.subspan(1)},
                                    {LayerId{300}, ids.subspan(5, 2)},
                                    {LayerId{1}, ids.subspan(9, 3)}};
  for (const bool want_crc32c : {false, true}) {
    v1::GatherStreamRequest request;
    ASSERT_TRUE(request.ParseFromString(
        AsText(GatherHead(1, 2)) +
        GatherField(std::string(200, 'v'), runs, want_crc32c)));
    EXPECT_EQ(request.call_id(), 1u);
    EXPECT_EQ(request.timeout_us(), 2u);
    EXPECT_EQ(request.gather().version(), std::string(200, 'v'));
    EXPECT_EQ(request.gather().want_crc32c(), want_crc32c);
    ASSERT_EQ(request.gather().layers_size(), 3);
    const auto& joined = request.gather().layers(0);
    EXPECT_EQ(joined.layer_id(), 1u);
    EXPECT_EQ(
        std::vector<RowId>(joined.row_ids().begin(), joined.row_ids().end()),
        many);
    EXPECT_EQ(request.gather().layers(1).layer_id(), 300u);
    EXPECT_EQ(request.gather().layers(1).row_ids(1), many[6]);
    EXPECT_EQ(request.gather().layers(2).row_ids_size(), 3);
  }
}

TEST(GatherRequestTest, AGatherOfNothingIsAGather) {
  v1::GatherStreamRequest request;
  ASSERT_TRUE(request.ParseFromString(GatherField("", {}, false)));
  EXPECT_TRUE(request.has_gather());
  const std::vector<RowRun> runs = {{LayerId{0}, {}}};
  ASSERT_TRUE(request.ParseFromString(GatherField("", runs, false)));
  EXPECT_EQ(request.gather().layers_size(), 1);
}

TEST(GatherRequestTest, TheLargestNumbersFit) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  v1::GatherStreamRequest request;
  ASSERT_TRUE(request.ParseFromString(AsText(GatherHead(kMax, kMax))));
  EXPECT_EQ(request.call_id(), kMax);
  EXPECT_EQ(request.timeout_us(), kMax);
  EXPECT_FALSE(request.has_gather());
  ASSERT_TRUE(request.ParseFromString(AsText(CancelMessage(kMax))));
  EXPECT_EQ(request.call_id(), kMax);
  EXPECT_TRUE(request.has_cancel());
}

}  // namespace
}  // namespace engram
