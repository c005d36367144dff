#include "table_server/server.h"

#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "core/model/checkpoint.h"
#include "core/model/manifest.h"
#include "core/rpc/channel.h"
#include "core/wire/error_detail.h"
#include "engram/v1/table.grpc.pb.h"
#include "tests/testing/checkpoint_maker.h"
#include "tests/testing/eventually.h"
#include "tests/testing/fixed_window.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using ::engram::test::CheckpointMaker;
using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::engram::test::Soon;
using ::engram::test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TableServerTest : public ::testing::Test {
 protected:
  void MakeCheckpoint() {
    CheckpointMaker("tiny").Write(dir_.path());
    ASSERT_THAT(test::WriteManifest(dir_.path()), IsOk());
  }

  TableServer::Options OptionsOf(const std::string& name) const {
    return {.table = {.checkpoint_dir = dir_.path()},
            .listen = "unix:" + sockets_.File(name),
            .server_name = name,
            .drain_grace = absl::ZeroDuration()};
  }

  // Partitions that a server says it holds.
  static std::set<PartitionRef> HeldBy(const TableServer& server) {
    const auto stub = v1::TableService::NewStub(MakeChannel(server.address()));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(Soon()));
    const auto reader = stub->WatchPartitions(&context, {});
    v1::WatchPartitionsResponse message;
    EXPECT_TRUE(reader->Read(&message));
    context.TryCancel();
    std::set<PartitionRef> held;
    for (const v1::LayerPartitions& layer : message.snapshot().layers()) {
      for (uint32_t p = 0; p < layer.partition_count(); ++p) {
        if ((layer.bitmap()[p / 8] >> p % 8 & 1) == 0) continue;
        held.insert({LayerId{layer.layer_id()}, PartitionId{p}});
      }
    }
    return held;
  }

  const TempDir dir_;
  const TempDir sockets_;
};

TEST_F(TableServerTest, LoadsAndServesACheckpoint) {
  MakeCheckpoint();
  const auto server = TableServer::Create(OptionsOf("a"));
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT((*server)->WaitUntilReady(Soon()), IsOk());
  const auto checkpoint = Checkpoint::Open(dir_.path());
  ASSERT_THAT(checkpoint, IsOk());

  const auto stub =
      v1::TableService::NewStub(MakeChannel((*server)->address()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(Soon()));
  v1::GatherRequest request;
  v1::LayerRows* layer = request.add_layers();
  layer->set_layer_id(14);
  const std::vector<RowId> ids = {4, 1000, 4, 23000};
  layer->mutable_row_ids()->Assign(ids.begin(), ids.end());
  v1::GatherResponse response;
  ASSERT_TRUE(stub->Gather(&context, request, &response).ok());
  std::string wanted(ids.size() * checkpoint->row_format().row_bytes(), '?');
  ASSERT_THAT(checkpoint->GatherRows(
                  1, ids,
                  absl::MakeSpan(reinterpret_cast<std::byte*>(wanted.data()),
                                 wanted.size())),
              IsOk());
  EXPECT_EQ(response.rows(), wanted);
  EXPECT_EQ(response.version(), (*server)->version());
}

TEST_F(TableServerTest, MembersShareTheTable) {
  MakeCheckpoint();
  std::vector<std::unique_ptr<TableServer>> servers;
  size_t held = 0;
  std::set<PartitionRef> all;
  for (const char* name : {"a", "b", "c"}) {
    TableServer::Options options = OptionsOf(name);
    options.members = "static:a=h:1,b=h:2,c=h:3";
    options.replicas = 2;
    auto server = TableServer::Create(options);
    ASSERT_THAT(server, IsOk());
    ASSERT_THAT((*server)->WaitUntilReady(Soon()), IsOk());
    const std::set<PartitionRef> mine = HeldBy(**server);
    held += mine.size();
    all.insert(mine.begin(), mine.end());
    servers.push_back(*std::move(server));
  }
  const auto manifest = Manifest::Load(dir_.File(kManifestFileName));
  ASSERT_THAT(manifest, IsOk());
  const size_t partitions =
      manifest->partition_count(0) + manifest->partition_count(1);
  EXPECT_EQ(all.size(), partitions);
  EXPECT_EQ(held, 2 * partitions);
}

TEST_F(TableServerTest, ServesChosenLayersOnly) {
  MakeCheckpoint();
  TableServer::Options options = OptionsOf("a");
  options.layers = {LayerId{14}};
  const auto server = TableServer::Create(options);
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT((*server)->WaitUntilReady(Soon()), IsOk());
  const std::set<PartitionRef> held = HeldBy(**server);
  EXPECT_FALSE(held.empty());
  for (const PartitionRef& ref : held) EXPECT_EQ(ref.layer, LayerId{14});
  options.layers = {LayerId{2}};
  EXPECT_THAT(TableServer::Create(options),
              IsError(absl::StatusCode::kInvalidArgument,
                      HasSubstr("layers to place: layer 2")));
}

TEST_F(TableServerTest, DamageKeepsItFromEverBeingReady) {
  MakeCheckpoint();
  CheckpointMaker damaged("tiny");
  damaged.Tensor("layers.1.engram.embed.weight").bytes[0] ^= std::byte{1};
  damaged.Write(dir_.path());
  const auto server = TableServer::Create(OptionsOf("a"));
  ASSERT_THAT(server, IsOk());
  EXPECT_THAT((*server)->WaitUntilReady(Soon()),
              IsError(absl::StatusCode::kFailedPrecondition,
                      HasSubstr("layer 1 partition 0")));
  EXPECT_FALSE(HeldBy(**server).contains({LayerId{1}, PartitionId{0}}));
}

TEST_F(TableServerTest, TooLittleMemoryIsRefusedWithTheSums) {
  MakeCheckpoint();
  TableServer::Options options = OptionsOf("a");
  options.available_memory_bytes = 1 << 20;
  EXPECT_THAT(TableServer::Create(options),
              IsError(absl::StatusCode::kResourceExhausted,
                      AllOf(HasSubstr("layer 1"), HasSubstr("layer 14"),
                            HasSubstr("needed"), HasSubstr("1048576 bytes"))));
}

TEST_F(TableServerTest, RefusesBadOptions) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  TableServer::Options options = OptionsOf("a");
  EXPECT_THAT(TableServer::Create(options),
              IsError(absl::StatusCode::kNotFound, HasSubstr(dir_.path())));
  MakeCheckpoint();
  options.members = "static:b=h:1";
  EXPECT_THAT(TableServer::Create(options),
              IsError(kInvalid, HasSubstr("server name a")));
  options = OptionsOf("a");
  options.table.source = "nvme";
  EXPECT_THAT(TableServer::Create(options),
              IsError(kInvalid, HasSubstr("nvme")));
  options = OptionsOf("a");
  options.replicas = 0;
  EXPECT_THAT(TableServer::Create(options), IsError(kInvalid, ::testing::_));
  options = OptionsOf("a b");
  EXPECT_THAT(TableServer::Create(options),
              IsError(kInvalid, HasSubstr("a b")));
  options = {
      .table = {.source = "synthetic:1"}, .listen = "h:1", .server_name = "a"};
  EXPECT_THAT(TableServer::Create(options),
              IsError(kInvalid, HasSubstr("synthetic table needs")));
}

TEST_F(TableServerTest, PortInUse) {
  TableServer::Options options{
      .table = {.source = "synthetic:1", .preset = "tiny"},
      .listen = "127.0.0.1:0",
      .server_name = "a"};
  const auto first = TableServer::Create(options);
  ASSERT_THAT(first, IsOk());
  options.listen = (*first)->address();
  EXPECT_THAT(
      TableServer::Create(options),
      IsError(absl::StatusCode::kUnavailable,
              AllOf(HasSubstr(options.listen), HasSubstr("already in use"))));
}

TEST_F(TableServerTest, SyntheticTableOfTheTrueSizeIsReadyAtOnce) {
  TableServer::Options options = OptionsOf("a");
  options.table.source = "synthetic:1";
  options.table.preset = "v41";
  const auto server = TableServer::Create(options);
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT((*server)->WaitUntilReady(Soon()), IsOk());
  const auto stub =
      v1::TableService::NewStub(MakeChannel((*server)->address()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(Soon()));
  v1::GetTableResponse table;
  ASSERT_TRUE(stub->GetTable(&context, {}, &table).ok());
  EXPECT_TRUE(table.ready());
  EXPECT_GT(table.layers(0).row_count(), 384000000U);
  EXPECT_EQ(table.partition_rows(), 65536U);
}

TEST_F(TableServerTest, DrainTellsWatchersAndEnds) {
  TableServer::Options options = OptionsOf("a");
  options.table.source = "synthetic:1";
  options.table.preset = "tiny";
  const auto server = TableServer::Create(options);
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT((*server)->WaitUntilReady(Soon()), IsOk());
  const auto stub =
      v1::TableService::NewStub(MakeChannel((*server)->address()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(Soon()));
  const auto reader = stub->WatchPartitions(&context, {});
  v1::WatchPartitionsResponse message;
  ASSERT_TRUE(reader->Read(&message));
  (*server)->Drain();
  while (reader->Read(&message)) {
  }
  EXPECT_TRUE(message.delta().draining());
  EXPECT_EQ(ReasonOf(FromGrpcStatus(reader->Finish())), ErrorReason::kDraining);
}

TEST_F(TableServerTest, ADrainingServerSaysSoUntilItsCallsHaveEnded) {
  TableServer::Options options = OptionsOf("a");
  options.table.source = "synthetic:1";
  options.table.preset = "tiny";
  options.drain_calls = absl::Seconds(60);
  const auto server = TableServer::Create(options);
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT((*server)->WaitUntilReady(Soon()), IsOk());
  const auto stub = v1::TableService::NewStub(
      test::ChannelWithFixedWindow((*server)->address()));
  v1::GatherRequest gather;
  gather.add_layers()->set_layer_id(1);
  gather.mutable_layers(0)->mutable_row_ids()->Resize(65536, 1);
  // More than the connection takes while nobody reads keeps a stream open.
  grpc::ClientContext stream_context;
  stream_context.set_deadline(absl::ToChronoTime(Soon()));
  const auto stream = stub->GatherStream(&stream_context);
  v1::GatherStreamRequest request;
  *request.mutable_gather() = gather;
  for (uint64_t id = 0; id < 16; ++id) {
    request.set_call_id(id);
    ASSERT_TRUE(stream->Write(request));
  }
  v1::GatherStreamResponse piece;
  ASSERT_TRUE(stream->Read(&piece));

  std::thread drain([&] { (*server)->Drain(); });
  gather.mutable_layers(0)->mutable_row_ids()->Resize(1, 1);
  absl::Status status;
  while (status.ok()) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(Soon()));
    v1::GatherResponse response;
    status = FromGrpcStatus(stub->Gather(&context, gather, &response));
  }
  EXPECT_EQ(ReasonOf(status), ErrorReason::kDraining);
  stream_context.TryCancel();
  drain.join();
}

}  // namespace
}  // namespace engram
