#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_LOADING_TIERED_STORE_FIXTURE_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_LOADING_TIERED_STORE_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "table_server/loading/tiered_store.h"
#include "table_server/store/fake_local_store.h"
#include "table_server/tier/damaged_copies.h"
#include "table_server/tier/slot_memory.h"
#include "table_server/tier/tier_stack.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/table_server/test_table.h"
#include "tests/unit/table_server/tier/read_rows.h"

namespace engram::test {

// The test table, with digests.
inline Manifest DigestedManifest() {
  const Manifest tiny = TinyManifest();
  std::vector<ManifestLayer> layers;
  for (size_t i = 0; i < tiny.layers().size(); ++i) {
    ManifestLayer layer = tiny.layers()[i];
    for (uint32_t p = 0; p < tiny.partition_count(i); ++p) {
      std::string rows =
          SyntheticPartition(tiny, {layer.layer_id, PartitionId{p}});
      layer.digests.push_back(DigestOf(BytesOf(rows)));
    }
    layers.push_back(std::move(layer));
  }
  auto manifest =
      Manifest::Create(tiny.config(), tiny.row_format(), tiny.partition_rows(),
                       std::move(layers), "checkpoint");
  ENGRAM_CHECK(manifest.ok());
  return *std::move(manifest);
}

inline const Manifest& TestManifest() {
  static const auto* manifest = new Manifest(DigestedManifest());
  return *manifest;
}

// Gives every partition, unless it is told not to.
class TestSource final : public PartitionSource {
 public:
  std::string description() const override { return "the source"; }
  absl::Status Read(
      const PartitionRef& ref, absl::Span<std::byte> out,
      absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) override {
    ++reads;
    if (!fault.ok()) return fault;
    FillWithSyntheticRows(TestManifest(), ref, out);
    return on_bytes(out.size());
  }

  absl::Status fault;
  std::atomic<int> reads{0};
};

constexpr uint64_t kMuch = uint64_t{1} << 40;

class TieredStoreFixture : public ::testing::Test {
 protected:
  PartitionRef Ref(uint32_t partition) const {
    return {manifest_.layers()[0].layer_id, PartitionId{partition}};
  }
  uint64_t SlotBytes() const {
    return SlotMemory::SlotBytes(store_->BytesToLoad(Ref(0)));
  }
  // As after a start: memory is empty, the local store is as it was.
  void Start(TieredStore::Options options) {
    store_.reset();
    tier_ = *HostTier::Create(manifest_);
    damaged_ = std::make_unique<DamagedCopies>();
    stack_ = *TierStack::Create(
        manifest_,
        {.host = tier_.get(), .store = &local_, .damaged = damaged_.get()});
    options.sources = {&source_};
    options.copies.clock = &clock_;
    if (options.available.bytes == 0) options.available = {kMuch, "a test"};
    store_.emplace(manifest_, *tier_, local_, *damaged_, std::move(options));
  }
  // With memory for so many partitions.
  void StartWith(uint64_t partitions) {
    Start({});
    Start({.max_host_bytes = partitions * SlotBytes()});
  }
  absl::Status Load(const PartitionRef& ref) {
    return store_->Load(ref, [](size_t) { return absl::OkStatus(); });
  }
  bool IsCold(uint32_t partition) const {
    return !tier_->IsAllocated(0, PartitionId{partition});
  }
  // Every row, through the tiers.
  absl::Status Serve(uint32_t partition) const {
    const std::string wanted = SyntheticPartition(manifest_, Ref(partition));
    std::vector<RowId> ids(wanted.size() / tier_->row_bytes());
    for (size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<RowId>(partition * manifest_.partition_rows() + i);
    }
    std::string out(wanted.size(), '\xEE');
    const absl::Status status = ReadRows(*stack_, 0, ids, BytesOf(out));
    if (status.ok()) {
      EXPECT_EQ(out, wanted);
    }
    return status;
  }
  void ExpectServed(uint32_t partition) const {
    EXPECT_THAT(Serve(partition), IsOk());
  }

  const Manifest& manifest_ = TestManifest();
  TestSource source_;
  FakeLocalStore local_{manifest_};
  FakeClock clock_{absl::UnixEpoch()};
  std::unique_ptr<HostTier> tier_;
  std::unique_ptr<DamagedCopies> damaged_;
  std::unique_ptr<TierStack> stack_;
  std::optional<TieredStore> store_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_LOADING_TIERED_STORE_FIXTURE_H_
