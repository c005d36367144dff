// Random gathers over several table servers in one process: every row is
// compared with the checkpoint's files, or with the function that made it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/checkpoint.h"
#include "core/model/synthetic_rows.h"
#include "engram_client/table_client.h"
#include "table_server/server.h"
#include "tests/integration/server_group.h"
#include "tests/testing/checkpoint_maker.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using test::IsOk;
using test::ServerGroup;
using test::Soon;

// Ids of one layer, with the repeats that n-grams have.
std::vector<RowId> RandomIds(std::mt19937_64& random, uint64_t rows) {
  constexpr size_t kSizes[] = {0, 1, 24, 48, 500, 3000};
  std::vector<RowId> ids(kSizes[random() % std::size(kSizes)]);
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = i > 0 && random() % 4 == 0 ? ids[random() % i]
                                        : static_cast<RowId>(random() % rows);
  }
  return ids;
}

struct Request {
  std::vector<std::vector<RowId>> ids;         // by layer
  std::vector<std::vector<std::byte>> packed;  // by layer

  std::vector<LayerGather> layers(const TableInfo& table) {
    std::vector<LayerGather> out;
    for (size_t i = 0; i < ids.size(); ++i) {
      out.push_back(
          {table.layers[i].layer_id, ids[i], absl::MakeSpan(packed[i])});
    }
    return out;
  }
};

// Poisoned, so that a row nobody wrote shows.
Request RandomRequest(std::mt19937_64& random, const TableInfo& table) {
  Request request;
  for (const TableInfo::Layer& layer : table.layers) {
    request.ids.push_back(RandomIds(random, layer.row_count));
    request.packed.emplace_back(
        request.ids.back().size() * table.row_format.row_bytes(),
        std::byte{0xEE});
  }
  return request;
}

class RandomGatherTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new test::TempDir;
    auto checkpoint =
        test::WriteServedCheckpoint(test::CheckpointMaker("tiny"), *directory_);
    ASSERT_THAT(checkpoint, IsOk());
    checkpoint_ = new Checkpoint(*std::move(checkpoint));
  }
  static void TearDownTestSuite() {
    delete checkpoint_;
    delete directory_;
  }

  static TableServer::Options Options(uint32_t replicas) {
    TableServer::Options options;
    options.table.checkpoint_dir = directory_->path();
    options.replicas = replicas;
    return options;
  }

  static void ExpectStoredRows(const Request& request) {
    for (size_t i = 0; i < request.ids.size(); ++i) {
      std::vector<std::byte> wanted(request.packed[i].size());
      ASSERT_THAT(
          checkpoint_->GatherRows(i, request.ids[i], absl::MakeSpan(wanted)),
          IsOk());
      ASSERT_TRUE(request.packed[i] == wanted) << "layer index " << i;
    }
  }

  static test::TempDir* directory_;
  static Checkpoint* checkpoint_;
};

test::TempDir* RandomGatherTest::directory_ = nullptr;
Checkpoint* RandomGatherTest::checkpoint_ = nullptr;

TEST_F(RandomGatherTest, EveryRowOfAThousandRequestsIsTheStoredOne) {
  const ServerGroup servers(3, Options(/*replicas=*/2));
  const auto client = servers.Connect({.max_rows_per_call = 256});
  ASSERT_NE(client, nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 250 && !HasFatalFailure(); ++i) {
        Request request = RandomRequest(random, client->table());
        ASSERT_THAT(client->Gather(request.layers(client->table()), Soon()),
                    IsOk());
        ExpectStoredRows(request);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(RandomGatherTest, CancelledGathersWriteNothingAfterTheyAreGone) {
  const ServerGroup servers(3, Options(/*replicas=*/1));
  const auto client = servers.Connect({.max_rows_per_call = 64});
  ASSERT_NE(client, nullptr);
  std::mt19937_64 random(11);
  for (int i = 0; i < 300; ++i) {
    Request request = RandomRequest(random, client->table());
    auto handle =
        client->Prefetch(request.layers(client->table()), Soon(), nullptr);
    for (uint64_t spin = random() % 3000; spin > 0; --spin) {
      if (handle->done()) break;
    }
    handle->Cancel();
    const bool whole = handle->Wait().ok();
    handle.reset();
    if (whole) {
      ExpectStoredRows(request);
      continue;
    }
    // Nobody may write to the buffers now: what is put there stays.
    for (auto& packed : request.packed) {
      std::fill(packed.begin(), packed.end(), std::byte{0x55});
    }
    Request other = RandomRequest(random, client->table());
    ASSERT_THAT(client->Gather(other.layers(client->table()), Soon()), IsOk());
    ExpectStoredRows(other);
    for (const auto& packed : request.packed) {
      for (const std::byte byte : packed) ASSERT_EQ(byte, std::byte{0x55});
    }
  }
}

TEST(TrueLayoutTest, RowsBeyondTwoToThe36BytesAreTheRightOnes) {
  constexpr uint64_t kSeed = 7;
  TableServer::Options options;
  options.table.source = absl::StrCat("synthetic:", kSeed);
  options.table.preset = "v41";
  options.replicas = 2;
  const ServerGroup servers(3, options);
  const auto client = servers.Connect({.max_rows_per_call = 6144});
  ASSERT_NE(client, nullptr);
  const TableInfo& table = client->table();
  ASSERT_EQ(table.layers.size(), 2);
  ASSERT_EQ(table.layers[1].row_count, 384016682);
  ASSERT_GT(table.layers[1].row_count * table.row_format.row_bytes(),
            uint64_t{1} << 36);

  std::mt19937_64 random(3);
  for (int i = 0; i < 50; ++i) {
    Request request = RandomRequest(random, table);
    for (size_t l = 0; l < request.ids.size(); ++l) {
      if (request.ids[l].empty()) continue;
      request.ids[l].back() = static_cast<RowId>(table.layers[l].row_count - 1);
    }
    ASSERT_THAT(client->Gather(request.layers(table), Soon()), IsOk());
    std::vector<std::byte> wanted(table.row_format.row_bytes());
    for (size_t l = 0; l < request.ids.size(); ++l) {
      for (size_t row = 0; row < request.ids[l].size(); ++row) {
        SyntheticRow(kSeed, table.layers[l].layer_id, request.ids[l][row],
                     table.row_format, absl::MakeSpan(wanted));
        ASSERT_EQ(std::memcmp(request.packed[l].data() + row * wanted.size(),
                              wanted.data(), wanted.size()),
                  0)
            << "layer index " << l << " row " << request.ids[l][row];
      }
    }
  }
}

}  // namespace
}  // namespace engram
