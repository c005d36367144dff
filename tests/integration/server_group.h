#ifndef ENGRAM_TESTS_INTEGRATION_SERVER_GROUP_H_
#define ENGRAM_TESTS_INTEGRATION_SERVER_GROUP_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/model/checkpoint.h"
#include "engram_client/table_client.h"
#include "table_server/server.h"
#include "tests/testing/checkpoint_maker.h"
#include "tests/testing/eventually.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram::test {

// Writes what table servers need of a checkpoint, its manifest included.
inline absl::StatusOr<Checkpoint> WriteServedCheckpoint(
    const CheckpointMaker& maker, const TempDir& directory) {
  maker.Write(directory.path());
  const auto manifest = WriteManifest(directory.path());
  if (!manifest.ok()) return manifest.status();
  return Checkpoint::Open(directory.path());
}

// Table servers on unix sockets of a temporary directory.
class ServerGroup {
 public:
  ServerGroup(size_t count, TableServer::Options options) : options_(options) {
    std::vector<std::string> members;
    for (size_t i = 0; i < count; ++i) {
      addresses_.push_back(absl::StrCat("unix:", sockets_.File(NameOf(i))));
      members.push_back(absl::StrCat(NameOf(i), "=", addresses_[i]));
    }
    options_.members = absl::StrCat("static:", absl::StrJoin(members, ","));
    servers_.resize(count);
    for (size_t i = 0; i < count; ++i) Start(i);
    for (size_t i = 0; i < count; ++i) ExpectReady(i);
  }

  // It leaves in order, and comes back at its address.
  void Restart(size_t index) {
    if (servers_[index] == nullptr) return;  // a failure was told
    servers_[index]->Drain();
    servers_[index].reset();
    Start(index);
    ExpectReady(index);
  }

  // Null: a failure was told.
  std::unique_ptr<TableClient> Connect(TableClient::Options options) const {
    options.addresses = addresses_;
    auto client = TableClient::Create(std::move(options));
    EXPECT_THAT(client, IsOk());
    if (!client.ok()) return nullptr;
    EXPECT_THAT((*client)->WaitUntilComplete(Soon()), IsOk());
    return *std::move(client);
  }

 private:
  static std::string NameOf(size_t index) { return absl::StrCat("t", index); }

  void Start(size_t index) {
    TableServer::Options options = options_;
    options.server_name = NameOf(index);
    options.listen = addresses_[index];
    auto server = TableServer::Create(options);
    EXPECT_THAT(server, IsOk());
    if (server.ok()) servers_[index] = *std::move(server);
  }

  void ExpectReady(size_t index) {
    if (servers_[index] == nullptr) return;
    EXPECT_THAT(servers_[index]->WaitUntilReady(Soon()), IsOk());
  }

  TempDir sockets_;
  TableServer::Options options_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<TableServer>> servers_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_INTEGRATION_SERVER_GROUP_H_
