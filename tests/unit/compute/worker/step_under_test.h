#ifndef ENGRAM_TESTS_UNIT_COMPUTE_WORKER_STEP_UNDER_TEST_H_
#define ENGRAM_TESTS_UNIT_COMPUTE_WORKER_STEP_UNDER_TEST_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "compute/worker/step.h"
#include "tests/unit/compute/worker/fakes.h"

namespace engram::test {

// One step over an EngineFixture.
struct StepUnderTest {
  StepUnderTest(EngineFixture& fixture, const std::vector<uint32_t>& tokens,
                const std::vector<bool>& mask = {})
      : fixture(fixture),
        streams(Streams(fixture.block, tokens.size())),
        token_bytes(streams.size() / tokens.size()) {
    auto begun = fixture.engine->Begin(MakeSpec(fixture.block, tokens, mask),
                                       absl::InfiniteFuture(), log);
    EXPECT_TRUE(begun.ok()) << begun.status();
    step = *std::move(begun);
    step->Start();
  }

  void Add(size_t layer_index, uint64_t first, uint64_t count) {
    step->AddChunk(Layer(layer_index), ChunkOf(first, count));
  }
  StepChunk ChunkOf(uint64_t first, uint64_t count) const {
    auto owner = std::make_shared<const std::string>(
        streams.substr(first * token_bytes, count * token_bytes));
    const absl::Span<const std::byte> view(
        reinterpret_cast<const std::byte*>(owner->data()), owner->size());
    return {.first_token = first, .streams = view, .owner = std::move(owner)};
  }
  LayerId Layer(size_t index) const {
    return fixture.block.layout().layers()[index].layer_id;
  }

  EngineFixture& fixture;
  std::string streams;
  size_t token_bytes;
  std::shared_ptr<StepLog> log = std::make_shared<StepLog>();
  std::shared_ptr<Step> step;
};

inline void ExpectNothingHeld(const EngineFixture& f) {
  EXPECT_EQ(f.engine->steps_in_flight(), 0);
  EXPECT_EQ(f.rows.open(), 0);
  auto& metrics = const_cast<WorkerMetrics&>(f.metrics);
  EXPECT_EQ(metrics.steps_in_flight().Value(), 0);
  EXPECT_EQ(metrics.prefetched_bytes().Value(), 0);
  EXPECT_EQ(metrics.stream_bytes().Value(), 0);
}

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_COMPUTE_WORKER_STEP_UNDER_TEST_H_
