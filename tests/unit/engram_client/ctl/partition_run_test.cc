#include "engram_client/ctl/partition_run.h"

#include <atomic>
#include <mutex>

#include "core/base/notification.h"
#include "engram_client/ctl/wanted_partitions.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/rebalance/test_manifest.h"

namespace engram::ctl {
namespace {

using test::IsError;
using test::IsOk;
using ::testing::UnorderedElementsAreArray;

class PartitionRunTest : public ::testing::Test {
 protected:
  static absl::Status Nothing(const PartitionRef&, absl::Span<std::byte>,
                              OnBytes) {
    return absl::OkStatus();
  }

  const Manifest& manifest_ = test::SmallManifest();
  const std::vector<PartitionRef> all_ =
      WantedPartitions(manifest_, {}).value();
};

TEST_F(PartitionRunTest, DoesEachOnceWithMemoryForItsRows) {
  for (const size_t threads : {1u, 3u, 64u}) {
    std::mutex mutex;
    std::vector<PartitionRef> done;
    std::atomic<size_t> at_once{0};
    std::atomic<size_t> most{0};
    const auto result = RunOverPartitions(
        manifest_, all_,
        [&](const PartitionRef& ref, absl::Span<std::byte> packed,
            OnBytes on_bytes) {
          const size_t now = at_once.fetch_add(1) + 1;
          for (size_t seen = most; seen < now;) {
            most.compare_exchange_weak(seen, now);
          }
          EXPECT_EQ(packed.size(), BytesOf(manifest_, ref));
          std::fill(packed.begin(), packed.end(), std::byte{1});
          EXPECT_THAT(on_bytes(packed.size()), IsOk());
          {
            std::lock_guard lock(mutex);
            done.push_back(ref);
          }
          at_once.fetch_sub(1);
          return absl::OkStatus();
        },
        {.threads = threads});
    ASSERT_THAT(result, IsOk());
    EXPECT_THAT(done, UnorderedElementsAreArray(all_));
    EXPECT_EQ(result->partitions, all_.size());
    EXPECT_EQ(result->bytes, BytesOf(manifest_, all_));
    EXPECT_FALSE(result->interrupted);
    EXPECT_LE(most, threads);
  }
}

TEST_F(PartitionRunTest, OfNothing) {
  const auto result = RunOverPartitions(manifest_, {}, Nothing, {.threads = 4});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->partitions, 0u);
}

TEST_F(PartitionRunTest, ErrorEndsItAndNothingElseIsBegun) {
  size_t begun = 0;
  const auto result = RunOverPartitions(
      manifest_, all_,
      [&](const PartitionRef&, absl::Span<std::byte>, OnBytes) {
        return ++begun == 3 ? absl::DataLossError("the third")
                            : absl::OkStatus();
      },
      {.threads = 1});
  EXPECT_THAT(result, IsError(absl::StatusCode::kDataLoss, "the third"));
  EXPECT_EQ(begun, 3u);
}

TEST_F(PartitionRunTest, ToldToEndBeforeItBegins) {
  const auto result =
      RunOverPartitions(manifest_, all_, Nothing,
                        {.threads = 2, .interrupted = [] { return true; }});
  ASSERT_THAT(result, IsOk());
  EXPECT_TRUE(result->interrupted);
  EXPECT_EQ(result->partitions, 0u);
}

TEST_F(PartitionRunTest, ToldToEndFinishesWhatIsUnderWay) {
  std::atomic<size_t> begun{0};
  bool told = false;  // of the thread that waits
  Notification stopping;
  const auto result = RunOverPartitions(
      manifest_, all_,
      [&](const PartitionRef&, absl::Span<std::byte>, OnBytes) {
        if (++begun >= 2) stopping.Wait();
        return absl::OkStatus();
      },
      {.threads = 1,
       .progress =
           [&](uint64_t, uint64_t) {
             if (told && !stopping.HasBeenNotified()) stopping.Notify();
           },
       .interrupted = [&] { return told = begun == 2; }});
  ASSERT_THAT(result, IsOk());
  EXPECT_TRUE(result->interrupted);
  EXPECT_EQ(result->partitions, 2u);
  EXPECT_EQ(begun, 2u);
}

TEST_F(PartitionRunTest, TellsHowFarItIs) {
  Notification told;
  uint64_t done = 0;
  uint64_t total = 0;
  const auto result = RunOverPartitions(
      manifest_, all_,
      [&](const PartitionRef& ref, absl::Span<std::byte>, OnBytes on_bytes) {
        if (ref != all_[0]) return absl::OkStatus();
        EXPECT_THAT(on_bytes(100), IsOk());
        told.Wait();
        return absl::OkStatus();
      },
      {.threads = 1, .progress = [&](uint64_t now, uint64_t of) {
         done = now;
         total = of;
         if (done == 100 && !told.HasBeenNotified()) told.Notify();
       }});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(done, 100u);
  EXPECT_EQ(total, BytesOf(manifest_, all_));
}

}  // namespace
}  // namespace engram::ctl
