// A soak of the table client: threads that gather in every size and end their
// gathers in every way, while servers are drained and come back. Every byte of
// every row that was promised is compared with the stored one, and nothing may
// write to the buffers of a gather after its end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/model/presets.h"
#include "engram_client/table_client.h"
#include "tests/integration/server_group.h"
#include "tests/integration/soaker.h"
#include "tests/testing/checkpoint_maker.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using test::IsOk;

constexpr uint64_t kRowsToCheck = ENGRAM_SOAK_ROWS;
constexpr absl::Duration kLongest = absl::Minutes(4);
constexpr size_t kServers = 3;
constexpr size_t kRestarts = 6;
constexpr size_t kThreads = 4;
constexpr size_t kGathersAtATime = 3;  // of one thread
// So what a gather left behind is looked at again several gathers later.
constexpr size_t kSoakersPerThread = 2 * kGathersAtATime;

// Rows as wide as those of DeepSeek-V4.1-Flash, few enough to keep in memory.
EngramConfig WideRows() {
  EngramConfig config = *PresetConfig("tiny");
  config.head_dim = 256;
  return config;
}

StoredRows ReadAllRows(const Checkpoint& checkpoint) {
  StoredRows stored;
  for (const LayerLayout& layer : checkpoint.layout().layers()) {
    const size_t index = stored.size();
    stored.emplace_back(layer.row_count * checkpoint.row_format().row_bytes());
    EXPECT_THAT(checkpoint.PackRows(index, 0, absl::MakeSpan(stored.back())),
                IsOk());
  }
  return stored;
}

// One thread's share. It draws one of the clients for each gather.
void Soak(const std::vector<std::unique_ptr<TableClient>>& clients,
          const StoredRows& stored, uint64_t seed, SoakProgress& progress) {
  std::mt19937_64 random(seed);
  std::vector<std::unique_ptr<Soaker>> soakers;
  for (size_t i = 0; i < kSoakersPerThread; ++i) {
    soakers.push_back(
        std::make_unique<Soaker>(clients[0]->table(), stored, progress));
  }
  for (size_t next = 0; !progress.done(); next += kGathersAtATime) {
    const auto soaker = [&](size_t i) -> Soaker& {
      return *soakers[(next + i) % soakers.size()];
    };
    for (size_t i = 0; i < kGathersAtATime; ++i) {
      soaker(i).Start(*clients[random() % clients.size()], random);
    }
    // The youngest first: it can be cancelled half way.
    for (size_t i = kGathersAtATime; i > 0; --i) soaker(i - 1).End(random);
  }
  for (const auto& soaker : soakers) soaker->ExpectSettled();
}

TEST(SoakTest, NoRowIsWrongAndNoByteIsWrittenLate) {
  const test::TempDir directory;
  const auto checkpoint =
      test::WriteServedCheckpoint(test::CheckpointMaker(WideRows()), directory);
  ASSERT_THAT(checkpoint, IsOk());
  const StoredRows stored = ReadAllRows(*checkpoint);
  test::ServerGroup servers(kServers,
                            {.table = {.checkpoint_dir = directory.path()},
                             .replicas = 2,
                             .drain_grace = absl::Milliseconds(50)});
  std::vector<std::unique_ptr<TableClient>> clients;
  clients.push_back(servers.Connect({.max_rows_per_call = 3000}));
  clients.push_back(
      servers.Connect({.max_rows_per_call = 500, .want_crc32c = true}));
  for (const auto& client : clients) ASSERT_NE(client, nullptr);

  SoakProgress progress(kRowsToCheck, kLongest);
  const absl::Time start = absl::Now();
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] { Soak(clients, stored, t, progress); });
  }
  for (size_t i = 0; i < kRestarts; ++i) {
    progress.WaitForRows(kRowsToCheck * (i + 1) / (kRestarts + 2));
    servers.Restart(i % kServers);
  }
  for (std::thread& thread : threads) thread.join();

  const SoakCounts counts = progress.counts();
  std::cout << counts.rows_checked << " rows checked in " << absl::Now() - start
            << "; " << kRestarts << " restarts; " << counts.gathers
            << " gathers: " << counts.whole << " whole, " << counts.cancelled
            << " cancelled, " << counts.destroyed << " destroyed, "
            << counts.out_of_time << " out of time\n";
  EXPECT_GE(counts.rows_checked, kRowsToCheck);
  EXPECT_GT(counts.cancelled, 0u);
  EXPECT_GT(counts.destroyed, 0u);
  EXPECT_GT(counts.out_of_time, 0u);
}

}  // namespace
}  // namespace engram
