#include "compute/worker/worker.h"

#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/model/checkpoint.h"
#include "core/model/manifest.h"
#include "core/model/token_map.h"
#include "core/rpc/channel.h"
#include "core/rpc/rpc_server.h"
#include "core/wire/error_detail.h"
#include "engram/v1/table.grpc.pb.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/compute/worker/fakes.h"

namespace engram {
namespace {

using test::Soon;
using ::testing::HasSubstr;

// Says that it serves a table, and no more.
class NamesATable final : public v1::TableService::Service {
 public:
  explicit NamesATable(v1::GetTableResponse table) : table_(std::move(table)) {}
  grpc::Status GetTable(grpc::ServerContext* /*context*/,
                        const v1::GetTableRequest* /*request*/,
                        v1::GetTableResponse* response) override {
    *response = table_;
    return grpc::Status::OK;
  }

 private:
  const v1::GetTableResponse table_;
};

class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest() {
    test::CopyFiles(ENGRAM_SOURCE_DIR "/tests/golden/data/tiny", dir_.path());
    options_ = {.checkpoint_dir = dir_.path(),
                .table_addresses = {"unix:" + dir_.File("table")},
                .listen = "unix:" + dir_.File("worker"),
                .worker_name = "w7"};
  }
  void WriteManifest() {
    const Checkpoint checkpoint = Checkpoint::Open(dir_.path()).value();
    const Manifest manifest =
        BuildManifest(checkpoint, {}, [](uint64_t, uint64_t) {}).value();
    version_ = manifest.version();
    ASSERT_TRUE(manifest.Save(dir_.File(kManifestFileName)).ok());
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
}

TEST_F(WorkerTest, RefusesTablesOfAnotherVersion) {
  WriteManifest();
  const Checkpoint checkpoint = Checkpoint::Open(dir_.path()).value();
  v1::GetTableResponse table;
  table.set_version(std::string(64, 'b'));
  table.set_server_name("t0");
  table.set_instance_id(1);
  table.set_config_json(ConfigToJson(checkpoint.config()));
  table.mutable_row_format()->set_code_dtype("F8_E4M3");
  table.mutable_row_format()->set_scale_dtype("F8_E8M0");
  table.mutable_row_format()->set_width(checkpoint.row_format().width);
  table.mutable_row_format()->set_block_size(32);
  table.mutable_row_format()->set_row_bytes(
      static_cast<uint32_t>(checkpoint.row_format().row_bytes()));
  table.set_partition_rows(1024);
  for (const LayerLayout& layer : checkpoint.layout().layers()) {
    v1::LayerInfo& info = *table.add_layers();
    info.set_layer_id(ToInt(layer.layer_id));
    info.set_row_count(layer.row_count);
    info.set_partition_count(
        static_cast<uint32_t>((layer.row_count - 1) / 1024 + 1));
  }
  table.set_max_rows_per_gather(1000);
  table.set_max_gathers_in_flight_per_stream(10);
  NamesATable service(table);
  const auto server = RpcServer::Start(
      {.listen = options_.table_addresses[0], .services = {&service}});
  ASSERT_TRUE(server.ok()) << server.status();

  const auto worker = Worker::Start(options_);
  ASSERT_TRUE(worker.ok()) << worker.status();
  const absl::Status status = (*worker)->WaitUntilReady(Soon());
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(version_));
  EXPECT_THAT(std::string(status.message()), HasSubstr(table.version()));
  EXPECT_THAT(std::string(status.message()), HasSubstr(dir_.path()));
}

}  // namespace
}  // namespace engram
