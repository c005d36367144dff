#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_COMPUTE_CLIENT_FIXTURE_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_COMPUTE_CLIENT_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engram_client/compute_client.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/compute/worker/test_worker.h"

namespace engram::test {

// Workers at sockets of a directory of its own.
class ClientFixture : public ::testing::Test {
 protected:
  std::string Address(const std::string& name) {
    return "unix:" + dir_.File(name);
  }
  std::unique_ptr<TestWorker> StartWorker(
      const std::string& name, const TestWorker::Options& options = {}) {
    return std::make_unique<TestWorker>(Address(name), options);
  }
  std::unique_ptr<ComputeClient> Connect(
      const std::vector<std::string>& names,
      absl::Duration first_hedge_delay = absl::Hours(1)) {
    ComputeClient::Options options;
    options.first_hedge_delay = first_hedge_delay;
    for (const auto& name : names) options.addresses.push_back(Address(name));
    auto client = ComputeClient::Create(options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  TempDir dir_;
};

// One step of one sequence and its buffers, outputs poisoned.
struct TestStep {
  TestStep(const EngramBlock& block, std::vector<uint32_t> ids)
      : block(block), streams(Streams(block, ids.size())) {
    sequences = {{.token_ids = std::move(ids)}};
    for (std::string& out : outs) out.assign(streams.size(), '\xEE');
  }
  StepLayerIo Io(size_t layer) {
    return {.layer = block.layout().layers()[layer].layer_id,
            .streams = {reinterpret_cast<const std::byte*>(streams.data()),
                        streams.size()},
            .streams_out = {reinterpret_cast<std::byte*>(outs[layer].data()),
                            streams.size()}};
  }
  absl::StatusOr<std::unique_ptr<ComputeClient::Step>> Begin(
      ComputeClient& client, absl::Time deadline = Soon()) {
    return Begin(client, StepOptions{.deadline = deadline});
  }
  absl::StatusOr<std::unique_ptr<ComputeClient::Step>> Begin(
      ComputeClient& client, const StepOptions& options) {
    return client.Begin(sequences, StepDtype::kBf16, StepReturn::kStreams,
                        {Io(0).layer, Io(1).layer}, options);
  }
  absl::Status Forward(ComputeClient& client) {
    auto step = Begin(client);
    if (!step.ok()) return step.status();
    for (const size_t layer : {0, 1}) {
      absl::Status status = (*step)->Layer(Io(layer));
      if (!status.ok()) return status;
    }
    return (*step)->Finish();
  }
  absl::Status Apply(ComputeClient& client, absl::Time deadline = Soon()) {
    return client.Apply(sequences, StepDtype::kBf16, StepReturn::kStreams,
                        {Io(0), Io(1)}, deadline);
  }
  void ExpectRight(size_t layer) {
    EXPECT_TRUE(outs[layer] == WantedStreams(block, layer,
                                             sequences[0].token_ids, {},
                                             streams));
  }
  void ExpectRight() {
    ExpectRight(0);
    ExpectRight(1);
  }

  const EngramBlock& block;
  std::vector<StepSequence> sequences;
  std::string streams;
  std::string outs[2];
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_COMPUTE_CLIENT_FIXTURE_H_
