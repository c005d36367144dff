#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_TABLE_CLIENT_FAKE_CLUSTER_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_TABLE_CLIENT_FAKE_CLUSTER_H_

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/check.h"
#include "engram_client/rpc/fake_table_server.h"
#include "engram_client/table_client_impl.h"
#include "tests/unit/engram_client/gather_buffers.h"

namespace engram {

inline absl::Time In(absl::Duration time) { return absl::Now() + time; }
inline absl::Time Later() { return In(absl::Seconds(60)); }

// Fake servers s0, s1, ... at addresses fake:1, fake:2, ... and a client.
class FakeCluster : public ::testing::Test {
 protected:
  // The logger is made before there are threads: its library is not built for
  // tsan, which cannot see that threads making it exclude each other.
  FakeCluster() { spdlog::default_logger_raw(); }

  // All are up and hold nothing.
  void StartServers(size_t count, FakeTable table = {}) {
    for (size_t i = 0; i < count; ++i) {
      AddServer("s" + std::to_string(i), table, i + 1);
    }
  }
  FakeTableServer& AddServer(const std::string& name, FakeTable table,
                             uint64_t instance_id) {
    servers_.push_back(
        std::make_unique<FakeTableServer>(name, std::move(table), instance_id));
    addresses_.push_back("fake:" + std::to_string(servers_.size()));
    return *servers_.back();
  }
  FakeTableServer& server(size_t i) { return *servers_[i]; }

  absl::StatusOr<std::unique_ptr<TableClient>> TryConnect(
      TableClient::Options options) {
    options.addresses = addresses_;
    return TableClientImpl::Create(std::move(options), Factory());
  }
  TransportFactory Factory() {
    return [this](const std::string& address) {
      for (size_t i = 0; i < addresses_.size(); ++i) {
        if (addresses_[i] == address) return servers_[i]->Connect();
      }
      ENGRAM_CHECK(false);
    };
  }
  void Connect(TableClient::Options options = {}) {
    auto client = TryConnect(std::move(options));
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<FakeTableServer>> servers_;
  std::unique_ptr<TableClient> client_;  // ends before the servers
};

}  // namespace engram

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_TABLE_CLIENT_FAKE_CLUSTER_H_
