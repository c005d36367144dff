#include "core/base/status_annotate.h"

#include <gtest/gtest.h>

#include "absl/strings/cord.h"

namespace engram {
namespace {

TEST(AnnotateTest, KeepsCodeAndPayloads) {
  absl::Status status = absl::DataLossError("gone");
  status.SetPayload("type/a", absl::Cord("1"));
  status.SetPayload("type/b", absl::Cord("2"));
  const absl::Status annotated = Annotate(status, "file x");
  EXPECT_EQ(annotated.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(annotated.message(), "file x: gone");
  EXPECT_EQ(annotated.GetPayload("type/a"), absl::Cord("1"));
  EXPECT_EQ(annotated.GetPayload("type/b"), absl::Cord("2"));
}

TEST(AnnotateTest, OkStaysOk) {
  EXPECT_EQ(Annotate(absl::OkStatus(), "x"), absl::OkStatus());
}

}  // namespace
}  // namespace engram
