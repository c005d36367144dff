#include "engram_client/rpc/gather_call.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace engram {
namespace {

class TestHost final : public GatherCall::Host {
 public:
  void OnDone(const GatherCallPtr&, const absl::Status& status) override {
    result = status;
  }
  bool EnterBuffers() override {
    if (!open) return false;
    ++inside;
    if (on_enter) on_enter();
    return true;
  }
  void LeaveBuffers() override { --inside; }
  void OnShut(GatherCall&) override { ++shut; }

  bool open = true;
  int inside = 0;
  int shut = 0;
  absl::Status result = absl::UnknownError("not done");
  std::function<void()> on_enter;
};

// Rows of four bytes; the caller wants rows 5, 6, 5.
class GatherCallTest : public ::testing::Test {
 protected:
  GatherCallTest() {
    GatherSegment segment{.part = plan_.parts()[0]};
    const std::vector<GatherPlan::Part> parts = {segment.part};
    std::vector<GatherSegment> segments;
    segments.push_back(std::move(segment));
    call_ = std::make_shared<GatherCall>(
        host_, CallKind::kFirst,
        PlannedCall{0, "server", std::move(segments), 2,
                    LoadCharge(std::make_shared<ServerLoad>(), 2)});
    rows_ = CallRows::Order(plan_, {absl::MakeConstSpan(parts)});
  }
  void SetRows() { call_->SetRows(plan_, outs_, 4, std::move(rows_[0])); }
  void Write(uint64_t offset, const std::string& text) {
    call_->Write(
        offset, {reinterpret_cast<const std::byte*>(text.data()), text.size()});
  }
  std::string Out() const {
    return {reinterpret_cast<const char*>(out_.data()), out_.size()};
  }

  const std::vector<RowId> ids_ = {5, 6, 5};
  std::vector<std::byte> out_ = std::vector<std::byte>(12, std::byte{'.'});
  const GatherPlan plan_{{{{LayerId{1}, ids_, absl::MakeSpan(out_)}}}, 16};
  const std::vector<absl::Span<std::byte>> outs_ = {absl::MakeSpan(out_)};
  const std::shared_ptr<TestHost> host_ = std::make_shared<TestHost>();
  const std::shared_ptr<HedgeBuffers> buffers_ = std::make_shared<HedgeBuffers>(
      100, std::make_shared<prometheus::Gauge>());
  std::vector<CallRows> rows_;
  GatherCallPtr call_;
};

TEST_F(GatherCallTest, WritesWhereTheRowsBelong) {
  SetRows();
  Write(4, "bbbb");
  EXPECT_FALSE(call_->complete());
  Write(0, "aaaa");
  EXPECT_TRUE(call_->complete());
  EXPECT_EQ(Out(), "aaaabbbbaaaa");
  EXPECT_EQ(host_->inside, 0);
  GatherCall::DoneOf(call_)(absl::OkStatus());
  EXPECT_TRUE(host_->result.ok());
}

TEST_F(GatherCallTest, DropsWhatComesAfterTheEnd) {
  SetRows();
  host_->open = false;
  Write(0, "aaaabbbb");
  EXPECT_EQ(Out(), "............");
}

TEST_F(GatherCallTest, DropsWhatComesOnceItIsShut) {
  SetRows();
  Write(0, "aa");
  EXPECT_TRUE(call_->Shut());
  Write(2, "aabbbb");
  EXPECT_EQ(Out(), "aa......aa..");
  EXPECT_EQ(host_->shut, 0);
  EXPECT_EQ(host_->inside, 0);
}

TEST_F(GatherCallTest, OneThatIsShutAsItBeginsToWriteWritesNothing) {
  SetRows();
  host_->on_enter = [this] { EXPECT_TRUE(call_->Shut()); };
  Write(0, "aaaabbbb");
  EXPECT_EQ(Out(), "............");
  EXPECT_EQ(host_->shut, 0);
}

TEST_F(GatherCallTest, AHedgeKeepsItsRowsUntilTheyArePlaced) {
  call_->WriteTo(buffers_->Take(8));
  SetRows();
  EXPECT_TRUE(call_->buffered());
  Write(3, "abbbb");
  Write(0, "aaa");
  EXPECT_TRUE(call_->complete());
  EXPECT_EQ(Out(), "............");
  call_->PlaceRows();
  EXPECT_EQ(Out(), "aaaabbbbaaaa");
  call_.reset();
  EXPECT_EQ(buffers_->used_bytes(), 0u);
}

}  // namespace
}  // namespace engram
