#include "compute/worker/worker.h"

#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "core/base/mutex.h"
#include "core/model/checkpoint.h"
#include "core/model/manifest.h"
#include "core/model/token_map.h"
#include "core/rpc/channel.h"
#include "core/wire/error_detail.h"
#include "engram/v1/table.grpc.pb.h"
#include "engram_client/rpc/lane_stream.h"
#include "tests/testing/checkpoint_maker.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/compute/worker/fakes.h"

namespace engram {
namespace {

using test::Soon;
using ::testing::HasSubstr;

// Says that it serves a table and holds all of it; takes every gather and
// answers none.
class ClaimsATable final : public v1::TableService::CallbackService {
 public:
  ClaimsATable(v1::GetTableResponse table, const std::string& address)
      : table_(std::move(table)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~ClaimsATable() override {
    server_->Shutdown(absl::ToChronoTime(absl::Now()));
  }

  size_t gathers() const {
    MutexLock lock(&mutex_);
    return gathers_;
  }

  grpc::ServerUnaryReactor* GetTable(grpc::CallbackServerContext* context,
                                     const v1::GetTableRequest* /*request*/,
                                     v1::GetTableResponse* response) override {
    *response = table_;
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerWriteReactor<v1::WatchPartitionsResponse>* WatchPartitions(
      grpc::CallbackServerContext* /*context*/,
      const v1::WatchPartitionsRequest* /*request*/) override {
    return new Watch(table_);
  }

  grpc::ServerBidiReactor<v1::GatherStreamRequest, v1::GatherStreamResponse>*
  GatherStream(grpc::CallbackServerContext* /*context*/) override {
    return new Gathers(this);
  }

 private:
  template <typename Reactor>
  struct EndsWhenCancelled : Reactor {
    void OnCancel() override { this->Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }
  };

  // Counts gathers, and answers with zeros once many wait.
  struct Gathers final
      : EndsWhenCancelled<grpc::ServerBidiReactor<v1::GatherStreamRequest,
                                                  v1::GatherStreamResponse>> {
    explicit Gathers(ClaimsATable* table) : table(table) {
      StartRead(&request);
    }
    void OnReadDone(bool ok) override {
      if (!ok) return;
      uint64_t rows = 0;
      for (const auto& layer : request.gather().layers()) {
        rows += layer.row_ids_size();
      }
      if (request.has_gather()) table->Count();
      MutexLock lock(&mutex);
      if (request.has_gather()) waiting.emplace_back(request.call_id(), rows);
      if (waiting.size() >= kHeldGathers) held = false;
      StartRead(&request);
      WriteNext();
    }
    void OnWriteDone(bool ok) override {
      MutexLock lock(&mutex);
      writing = false;
      if (ok) WriteNext();
    }
    void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      if (held || writing || waiting.empty()) return;
      const auto [call_id, rows] = waiting.front();
      waiting.pop_front();
      response.set_call_id(call_id);
      auto& piece = *response.mutable_piece();
      piece.set_rows(
          std::string(rows * table->table_.row_format().row_bytes(), '\0'));
      piece.set_last(true);
      piece.set_version(table->table_.version());
      writing = true;
      StartWrite(&response);
    }
    static constexpr size_t kHeldGathers = LaneStream::kMaxInFlight / 4;
    ClaimsATable* const table;
    v1::GatherStreamRequest request;
    v1::GatherStreamResponse response;  // owned by the write under way
    Mutex mutex;
    std::deque<std::pair<uint64_t, uint64_t>> waiting ABSL_GUARDED_BY(mutex);
    bool held ABSL_GUARDED_BY(mutex) = true;
    bool writing ABSL_GUARDED_BY(mutex) = false;
  };

  void Count() {
    MutexLock lock(&mutex_);
    ++gathers_;
  }

  struct Watch final
      : EndsWhenCancelled<
            grpc::ServerWriteReactor<v1::WatchPartitionsResponse>> {
    explicit Watch(const v1::GetTableResponse& table) {
      message.set_epoch(1);
      auto& snapshot = *message.mutable_snapshot();
      snapshot.set_version(table.version());
      snapshot.set_server_name(table.server_name());
      snapshot.set_instance_id(table.instance_id());
      for (const v1::LayerInfo& layer : table.layers()) {
        v1::LayerPartitions& partitions = *snapshot.add_layers();
        partitions.set_layer_id(layer.layer_id());
        partitions.set_partition_count(1);
        partitions.set_bitmap("\x01");
      }
      StartWrite(&message);
    }
    v1::WatchPartitionsResponse message;
  };

  const v1::GetTableResponse table_;
  mutable Mutex mutex_;
  size_t gathers_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<grpc::Server> server_;
};

// grpc.health.v1.Health/Check through a generic call, for there are no
// generated stubs: an empty request, the reply is {1: status}.
bool IsServing(const std::string& address) {
  const grpc::ByteBuffer request(nullptr, 0);
  grpc::GenericStub stub(MakeChannel(address));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check",
                                    request, &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  EXPECT_TRUE(status.ok()) << status.error_message();
  grpc::Slice bytes;
  return reply.DumpToSingleSlice(&bytes).ok() && bytes.size() == 2 &&
         bytes.begin()[1] == 1;
}

class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest() {
    test::CopyFiles(ENGRAM_SOURCE_DIR "/tests/golden/data/tiny", dir_.path());
    options_ = {.checkpoint_dir = dir_.path(),
                .table_addresses = {"unix:" + dir_.File("table")},
                .listen = "unix:" + dir_.File("worker"),
                .worker_name = "w7",
                .drain_grace = absl::ZeroDuration()};
  }
  void WriteManifest() {
    const absl::StatusOr<Manifest> manifest = test::WriteManifest(dir_.path());
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    version_ = manifest->version();
  }
  // The checkpoint's table, in one partition a layer.
  v1::GetTableResponse MakeTable(const std::string& version) {
    const Checkpoint checkpoint = Checkpoint::Open(dir_.path()).value();
    v1::GetTableResponse table;
    table.set_version(version);
    table.set_server_name("t0");
    table.set_instance_id(1);
    table.set_config_json(ConfigToJson(checkpoint.config()));
    table.mutable_row_format()->set_code_dtype("F8_E4M3");
    table.mutable_row_format()->set_scale_dtype("F8_E8M0");
    table.mutable_row_format()->set_width(checkpoint.row_format().width);
    table.mutable_row_format()->set_block_size(32);
    table.mutable_row_format()->set_row_bytes(
        static_cast<uint32_t>(checkpoint.row_format().row_bytes()));
    table.set_partition_rows(uint64_t{1} << 30);
    for (const LayerLayout& layer : checkpoint.layout().layers()) {
      v1::LayerInfo& info = *table.add_layers();
      info.set_layer_id(ToInt(layer.layer_id));
      info.set_row_count(layer.row_count);
      info.set_partition_count(1);
    }
    table.set_max_rows_per_gather(1000);
    table.set_max_gathers_in_flight_per_stream(10);
    return table;
  }
  std::string StartError() {
    const auto worker = Worker::Start(options_);
    EXPECT_FALSE(worker.ok());
    return worker.status().ToString();
  }

  test::TempDir dir_;
  Worker::Options options_;
  std::string version_;
};

TEST_F(WorkerTest, NeedsAManifest) {
  EXPECT_THAT(StartError(), HasSubstr("engramctl manifest"));
}

TEST_F(WorkerTest, NeedsTheRightTokenMap) {
  WriteManifest();
  dir_.Write(kTokenMapFileName, "four");
  EXPECT_THAT(StartError(), HasSubstr(kTokenMapFileName));
  options_.token_map_path = dir_.File("none");
  EXPECT_THAT(StartError(), HasSubstr("none"));
}

TEST_F(WorkerTest, AnAddressInUseIsAnError) {
  WriteManifest();
  options_.listen = "127.0.0.1:0";
  const auto first = Worker::Start(options_);
  ASSERT_TRUE(first.ok()) << first.status();
  options_.listen = (*first)->address();
  EXPECT_THAT(StartError(), HasSubstr(options_.listen));
}

TEST_F(WorkerTest, RefusesADeviceThatIsNotThere) {
  WriteManifest();
  options_.compute.device = *DeviceRequest::Parse("cuda:999");
  EXPECT_THAT(StartError(), HasSubstr("device cuda:999: "));
}

TEST_F(WorkerTest, ListensBeforeItsTablesAreThere) {
  WriteManifest();
  options_.admin = "127.0.0.1:0";
  const auto started = Worker::Start(options_);
  ASSERT_TRUE(started.ok()) << started.status();
  Worker& worker = **started;
  EXPECT_EQ(worker.version(), version_);
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(worker.WaitUntilReady(absl::InfinitePast())));

  const auto stub = v1::ComputeService::NewStub(MakeChannel(worker.address()));
  v1::GetModelResponse model;
  grpc::ClientContext ask;
  ASSERT_TRUE(stub->GetModel(&ask, {}, &model).ok());
  EXPECT_EQ(model.version(), version_);
  EXPECT_EQ(model.worker_name(), "w7");
  EXPECT_FALSE(model.ready());
  v1::ApplyResponse applied;
  grpc::ClientContext apply;
  EXPECT_EQ(ReasonOf(FromGrpcStatus(stub->Apply(&apply, {}, &applied))),
            ErrorReason::kNotReady);
  worker.Drain(absl::Now());
  EXPECT_TRUE(absl::IsCancelled(worker.WaitUntilReady(absl::InfinitePast())));
}

TEST_F(WorkerTest, RefusesTablesOfAnotherVersion) {
  WriteManifest();
  const ClaimsATable table(MakeTable(std::string(64, 'b')),
                           options_.table_addresses[0]);
  const auto worker = Worker::Start(options_);
  ASSERT_TRUE(worker.ok()) << worker.status();
  const absl::Status status = (*worker)->WaitUntilReady(Soon());
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(version_));
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(64, 'b')));
  EXPECT_THAT(std::string(status.message()), HasSubstr(dir_.path()));
}

TEST_F(WorkerTest, FindsItsTablesByTheMembersOfTheCluster) {
  WriteManifest();
  const ClaimsATable table(MakeTable(version_), options_.table_addresses[0]);
  options_.table_members = "static:t0=" + options_.table_addresses[0];
  options_.table_addresses.clear();
  const auto worker = Worker::Start(options_);
  ASSERT_TRUE(worker.ok()) << worker.status();
  const absl::Status status = (*worker)->WaitUntilReady(Soon());
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(WorkerTest, WaitsForMembersOfItsVersionToReplaceOthers) {
  WriteManifest();
  auto table = std::make_unique<ClaimsATable>(MakeTable(std::string(64, 'b')),
                                              options_.table_addresses[0]);
  options_.table_members = "static:t0=" + options_.table_addresses[0];
  options_.table_addresses.clear();
  options_.connect_timeout = absl::Milliseconds(50);
  const auto worker = Worker::Start(options_);
  ASSERT_TRUE(worker.ok()) << worker.status();
  // Some tries.
  absl::Status status =
      (*worker)->WaitUntilReady(absl::Now() + absl::Seconds(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  const std::string address = options_.table_members.substr(10);
  table = nullptr;
  table = std::make_unique<ClaimsATable>(MakeTable(version_), address);
  status = (*worker)->WaitUntilReady(Soon());
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(WorkerTest, IsNotReadyWhileItsTablesAreGone) {
  WriteManifest();
  auto table = std::make_unique<ClaimsATable>(MakeTable(version_),
                                              options_.table_addresses[0]);
  const auto worker = Worker::Start(options_);
  ASSERT_TRUE(worker.ok()) << worker.status();
  ASSERT_TRUE((*worker)->WaitUntilReady(Soon()).ok());
  const std::string address = (*worker)->address();
  EXPECT_TRUE(IsServing(address));

  table = nullptr;
  EXPECT_TRUE(test::Eventually([&] { return !IsServing(address); }));
  const auto stub = v1::ComputeService::NewStub(MakeChannel(address));
  v1::ApplyResponse applied;
  grpc::ClientContext apply;
  const absl::Status status = FromGrpcStatus(stub->Apply(&apply, {}, &applied));
  EXPECT_EQ(ReasonOf(status), ErrorReason::kNotReady) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(options_.table_addresses[0]));

  table = std::make_unique<ClaimsATable>(MakeTable(version_),
                                         options_.table_addresses[0]);
  EXPECT_TRUE(test::Eventually([&] { return IsServing(address); }));
  // Once it leaves, tables change nothing any more.
  (*worker)->Drain(absl::Now());
}

TEST_F(WorkerTest, GivesCallersTimeToLeave) {
  WriteManifest();
  options_.drain_grace = absl::Seconds(2);
  const ClaimsATable table(MakeTable(version_), options_.table_addresses[0]);
  const auto started = Worker::Start(options_);
  ASSERT_TRUE(started.ok()) << started.status();
  Worker& worker = **started;
  ASSERT_TRUE(worker.WaitUntilReady(Soon()).ok());
  EXPECT_TRUE(IsServing(worker.address()));

  const absl::Time began = absl::Now();
  std::thread drain([&] { worker.Drain(Soon()); });
  EXPECT_TRUE(test::Eventually([&] { return !IsServing(worker.address()); }));
  const auto stub = v1::ComputeService::NewStub(MakeChannel(worker.address()));
  v1::ApplyResponse applied;
  grpc::ClientContext apply;
  const absl::Status status = FromGrpcStatus(stub->Apply(&apply, {}, &applied));
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  drain.join();
  EXPECT_GE(absl::Now() - began, options_.drain_grace);
}

// The table client takes a gather for each layer of every step that is taken.
TEST_F(WorkerTest, FetchesForAsManyStepsAsItTakes) {
  constexpr size_t kStreams = 10;
  constexpr size_t kStepsPerStream = 64;
  WriteManifest();
  const ClaimsATable table(MakeTable(version_), options_.table_addresses[0]);
  const auto worker = Worker::Start(options_);
  ASSERT_TRUE(worker.ok()) << worker.status();
  ASSERT_TRUE((*worker)->WaitUntilReady(Soon()).ok());

  const auto stub =
      v1::ComputeService::NewStub(MakeChannel((*worker)->address()));
  v1::ForwardRequest begin;
  *begin.mutable_begin()->add_sequences() = test::MakeSequence({5});
  begin.mutable_begin()->set_dtype(v1::STREAM_DTYPE_BF16);
  begin.mutable_begin()->set_return_kind(v1::RETURN_KIND_STREAMS);
  std::vector<grpc::ClientContext> contexts(kStreams);
  std::vector<std::unique_ptr<
      grpc::ClientReaderWriter<v1::ForwardRequest, v1::ForwardResponse>>>
      streams;
  for (grpc::ClientContext& context : contexts) {
    streams.push_back(stub->Forward(&context));
    for (size_t id = 0; id < kStepsPerStream; ++id) {
      begin.set_step_id(id);
      ASSERT_TRUE(streams.back()->Write(begin));
    }
  }
  constexpr size_t kGathers = kStreams * kStepsPerStream * 2;
  EXPECT_TRUE(test::Eventually([&] { return table.gathers() >= kGathers; }))
      << table.gathers();
  EXPECT_EQ(table.gathers(), kGathers);
  for (size_t i = 0; i < kStreams; ++i) {
    contexts[i].TryCancel();
    EXPECT_TRUE(absl::IsCancelled(FromGrpcStatus(streams[i]->Finish())));
  }
}

}  // namespace
}  // namespace engram
