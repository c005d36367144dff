// Partitions copied from servers that fail: PeerSource over real calls.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "table_server/peers/grpc_peer_calls.h"
#include "table_server/peers/peer_source.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/table_server/peers/test_peer.h"

namespace engram {
namespace {

using ::engram::test::IsOk;
using ::engram::test::TempDir;
using ::engram::test::TestPeer;

class PeerCopyTest : public ::testing::Test {
 protected:
  PeerCopyTest() { calls_.Start(self_.server->loops()); }
  ~PeerCopyTest() override { calls_.Stop(); }

  PeerSource MakeSource() {
    return PeerSource(
        calls_, [this](const PartitionRef&) { return holders_; },
        {.version = manifest_.version(), .row_bytes = row_bytes_});
  }
  absl::Status Read(PeerSource& source,
                    absl::FunctionRef<absl::Status(size_t)> on_bytes) {
    out_.assign(wanted_.size(), '\xEE');
    return source.Read(
        ref_,
        absl::MakeSpan(reinterpret_cast<std::byte*>(out_.data()), out_.size()),
        on_bytes);
  }

  // Reads from one of the peers, does `end_giver` to it after its first piece,
  // and checks that the other one sends the rest.
  void CheckMovesOn(absl::FunctionRef<void(TestPeer&)> end_giver) {
    TestPeer* taken_over_by = nullptr;
    size_t told = 0;
    PeerSource source = MakeSource();
    const absl::Status status = Read(source, [&](size_t bytes) {
      told += bytes;
      if (taken_over_by != nullptr) return absl::OkStatus();
      const bool from_a = a_.gated_tier.copies() > 0;
      taken_over_by = from_a ? &b_ : &a_;
      taken_over_by->gated_tier.Open();
      end_giver(from_a ? a_ : b_);
      return absl::OkStatus();
    });
    ASSERT_THAT(status, IsOk());
    EXPECT_EQ(out_, wanted_);
    EXPECT_EQ(told, wanted_.size());
    const size_t piece = kPieceBytes / row_bytes_ * row_bytes_;
    EXPECT_EQ(static_cast<size_t>(taken_over_by->gated_tier.copies()),
              (wanted_.size() - 1) / piece);
  }

  static constexpr size_t kPieceBytes = 8192;

  const TempDir dir_;
  const Manifest manifest_ = test::OnePartitionManifest();
  const PartitionRef ref_{manifest_.layers()[0].layer_id, PartitionId{0}};
  const size_t row_bytes_ = manifest_.row_format().row_bytes();
  const std::string wanted_ = test::SyntheticPartition(manifest_, ref_);
  const ServiceLimits limits_{.max_fetches = 1,
                              .fetch_piece_bytes = kPieceBytes};
  TestPeer self_{manifest_, "self", dir_.File("self")};
  // Each sends one piece, then waits.
  TestPeer a_{manifest_, "a", dir_.File("a"), limits_, 1};
  TestPeer b_{manifest_, "b", dir_.File("b"), limits_, 1};
  std::vector<PartitionHolder> holders_{{"a", a_.address()},
                                        {"b", b_.address()}};
  GrpcPeerCalls calls_;
  std::string out_;
};

TEST_F(PeerCopyTest, APeerThatDiesIsFollowedByTheNext) {
  std::thread shutdown;
  TestPeer* dead = nullptr;
  CheckMovesOn([&](TestPeer& giver) {
    dead = &giver;
    // Returns once the copy that waits at the gate has ended.
    shutdown =
        std::thread([&giver] { giver.server->Shutdown(absl::InfinitePast()); });
  });
  dead->gated_tier.Open();
  shutdown.join();
}

TEST_F(PeerCopyTest, ADrainMovesTheReaderOn) {
  CheckMovesOn([](TestPeer& giver) { giver.service.StopAccepting(); });
}

TEST_F(PeerCopyTest, WaitsForABusyPeer) {
  holders_.pop_back();
  PeerSource source = MakeSource();
  std::thread first([&] {
    const absl::Status status = calls_.FetchPartition(
        a_.address(), {.version = manifest_.version(), .ref = ref_},
        [](absl::Span<const std::byte>) { return absl::OkStatus(); });
    EXPECT_THAT(status, IsOk());
  });
  a_.gated_tier.WaitForCopy();
  std::thread second([&] {
    EXPECT_THAT(Read(source, [](size_t) { return absl::OkStatus(); }), IsOk());
  });
  a_.gated_tier.Open();
  first.join();
  second.join();
  EXPECT_EQ(out_, wanted_);
}

}  // namespace
}  // namespace engram
