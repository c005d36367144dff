// kill -9 of a process that puts partitions, at twenty random points.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "table_server/store/flat_store.h"
#include "table_server/store/rocks_store.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/table_server/store/store_rows.h"

extern char** environ;

namespace engram::test {
namespace {

constexpr char kDirVariable[] = "ENGRAM_KILLED_STORE_DIR";
constexpr char kKindVariable[] = "ENGRAM_KILLED_STORE_KIND";
constexpr char kRoundVariable[] = "ENGRAM_KILLED_STORE_ROUND";
constexpr int kProgressFd = 3;

std::unique_ptr<LocalStore> OpenStore(const std::string& kind,
                                      const std::string& dir) {
  if (kind == "flat") {
    return FlatStore::Open(SmallManifest(),
                           {.dir = dir, .reads = {.thread_count = 2}})
        .value();
  }
  return RocksStore::Open(SmallManifest(),
                          {.dir = dir, .reads = {.thread_count = 2}})
      .value();
}

std::vector<PartitionRef> AllOf(const Manifest& manifest) {
  std::vector<PartitionRef> refs;
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    for (uint32_t p = 0; p < manifest.partition_count(i); ++p) {
      refs.push_back({manifest.layers()[i].layer_id, PartitionId{p}});
    }
  }
  return refs;
}

// Others in each round.
std::string RowsOfRound(const Manifest& manifest, const PartitionRef& ref,
                        int round) {
  std::string rows = MadePartition(manifest, ref);
  for (char& byte : rows) byte = static_cast<char>(byte + round);
  return rows;
}

// False: the child says nothing for a minute, or has ended.
bool HearsOne(int fd) {
  pollfd waited = {fd, POLLIN, 0};
  char byte = 0;
  return poll(&waited, 1, 60'000) == 1 && read(fd, &byte, 1) == 1;
}

// The process that is killed: tells of each partition that it has put.
TEST(KilledStore, PutsUntilItIsKilled) {
  const char* const dir = std::getenv(kDirVariable);
  if (dir == nullptr) GTEST_SKIP() << "runs as a child of StoreKillTest";
  const int round = std::atoi(std::getenv(kRoundVariable));
  const Manifest& manifest = SmallManifest();
  const auto store = OpenStore(std::getenv(kKindVariable), dir);
  // Made before, so that it does nothing but put.
  std::vector<std::pair<PartitionRef, std::string>> puts;
  for (const PartitionRef& ref : AllOf(manifest)) {
    puts.emplace_back(ref, RowsOfRound(manifest, ref, round));
  }
  while (true) {
    for (const auto& [ref, rows] : puts) {
      ASSERT_THAT(store->Put(ref, BytesOf(rows)), IsOk());
      ASSERT_EQ(write(kProgressFd, "p", 1), 1);
    }
  }
}

class StoreKillTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Kills it once it has told of `puts`.
  void RunAndKill(int round, int puts) {
    int progress[2];
    ASSERT_EQ(pipe2(progress, O_CLOEXEC), 0);
    setenv(kDirVariable, dir_.File("store").c_str(), 1);
    setenv(kKindVariable, GetParam(), 1);
    setenv(kRoundVariable, absl::StrCat(round).c_str(), 1);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, progress[1], kProgressFd);
    std::string program = std::filesystem::read_symlink("/proc/self/exe");
    std::string filter = "--gtest_filter=KilledStore.*";
    char* arguments[] = {program.data(), filter.data(), nullptr};
    pid_t child = 0;
    ASSERT_EQ(posix_spawn(&child, program.c_str(), &actions, nullptr, arguments,
                          environ),
              0);
    posix_spawn_file_actions_destroy(&actions);
    close(progress[1]);
    int told = 0;
    while (told < puts && HearsOne(progress[0])) ++told;
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    close(progress[0]);
    unsetenv(kDirVariable);
    ASSERT_EQ(told, puts);
  }

  // Each is as it was put in some round, and the first ones in the last.
  void CheckAll(int round, size_t puts) {
    const std::vector<PartitionRef> refs = AllOf(manifest_);
    for (size_t i = 0; i < refs.size(); ++i) {
      EXPECT_TRUE(store_->Has(refs[i]) || i >= puts);
      if (!store_->Has(refs[i])) continue;
      const auto rows = ReadPartition(*store_, manifest_, refs[i]);
      ASSERT_THAT(rows, IsOk());
      int put_in = round;
      while (put_in > 0 && *rows != RowsOfRound(manifest_, refs[i], put_in)) {
        --put_in;
      }
      EXPECT_GT(put_in, 0);
      EXPECT_TRUE(put_in == round || i >= puts);
    }
  }

  const Manifest& manifest_ = SmallManifest();
  const TempDir dir_;
  std::unique_ptr<LocalStore> store_;
};

TEST_P(StoreKillTest, OnlyCompletePartitionsAreFound) {
  std::mt19937 random(11);
  const size_t all = AllOf(manifest_).size();
  uint64_t half_written = 0;
  for (int round = 1; round <= 20; ++round) {
    const size_t puts = random() % all;
    RunAndKill(round, static_cast<int>(puts));
    store_ = OpenStore(GetParam(), dir_.File("store"));
    CheckAll(round, puts);
    EXPECT_EQ(store_->stats().removed_damaged, 0u);
    half_written += store_->stats().removed_half_written;
    store_.reset();
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(dir_.File("store"))) {
      EXPECT_NE(file.path().extension(), ".tmp") << file.path();
      EXPECT_NE(file.path().parent_path().filename() / file.path().extension(),
                "rocksdb-ingest/.sst");
    }
  }
  EXPECT_GT(half_written, 0u);  // or it was never killed while it wrote
}

INSTANTIATE_TEST_SUITE_P(Kinds, StoreKillTest,
                         ::testing::Values("flat", "rocksdb"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace engram::test
