#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_TEST_TABLE_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_TEST_TABLE_H_

#include <array>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/notification.h"
#include "core/model/manifest.h"
#include "core/model/presets.h"
#include "core/model/synthetic_rows.h"
#include "table_server/loading/table_source.h"
#include "table_server/partitions/partition_set.h"
#include "table_server/tier/row_tier.h"

namespace engram::test {

inline constexpr uint64_t kTestSeed = 7;

// The synthetic table of the "tiny" preset.
inline Manifest TinyManifest() {
  auto source = MakeSyntheticSource(*PresetConfig("tiny"), kTestSeed);
  ENGRAM_CHECK(source.ok());
  return std::move(source)->manifest;
}

// The same table with one partition a layer, of some 850 kB: more than a
// connection takes while nobody reads.
inline Manifest OnePartitionManifest() {
  const Manifest tiny = TinyManifest();
  auto manifest = Manifest::Create(
      tiny.config(), tiny.row_format(), uint64_t{1} << 15,
      {tiny.layers().begin(), tiny.layers().end()}, tiny.source());
  ENGRAM_CHECK(manifest.ok());
  return *std::move(manifest);
}

inline void AddAll(const Manifest& manifest, PartitionSet& partitions) {
  for (size_t i = 0; i < manifest.layers().size(); ++i) {
    for (uint32_t p = 0; p < manifest.partition_count(i); ++p) {
      partitions.Add(i, PartitionId{p});
    }
  }
}

// What a gather of these rows has to return.
inline std::string SyntheticRows(const Manifest& manifest, LayerId layer,
                                 const std::vector<RowId>& row_ids) {
  const size_t row_bytes = manifest.row_format().row_bytes();
  std::string rows(row_ids.size() * row_bytes, '\xEE');
  for (size_t i = 0; i < row_ids.size(); ++i) {
    SyntheticRow(kTestSeed, layer, row_ids[i], manifest.row_format(),
                 absl::MakeSpan(
                     reinterpret_cast<std::byte*>(rows.data()) + i * row_bytes,
                     row_bytes));
  }
  return rows;
}

// A partition as it has to be: `out` is all of it.
inline void FillWithSyntheticRows(const Manifest& manifest,
                                  const PartitionRef& ref,
                                  absl::Span<std::byte> out) {
  const size_t row_bytes = manifest.row_format().row_bytes();
  uint64_t row = ToInt(ref.partition) * manifest.partition_rows();
  for (size_t at = 0; at < out.size(); at += row_bytes, ++row) {
    SyntheticRow(kTestSeed, ref.layer, static_cast<RowId>(row),
                 manifest.row_format(), out.subspan(at, row_bytes));
  }
}

// All of a partition's rows.
inline std::string SyntheticPartition(const Manifest& manifest,
                                      const PartitionRef& ref) {
  const auto layer_index = manifest.IndexOf(ref.layer);
  ENGRAM_CHECK(layer_index.ok());
  std::string rows(manifest.RowsIn(*layer_index, ref.partition) *
                       manifest.row_format().row_bytes(),
                   '\xEE');
  FillWithSyntheticRows(
      manifest, ref,
      absl::MakeSpan(reinterpret_cast<std::byte*>(rows.data()), rows.size()));
  return rows;
}

// Another tier behind a gate: every copy but the first `free_copies` waits
// until the gate is open.
class GatedTier final : public RowTier {
 public:
  explicit GatedTier(const RowTier& tier, int free_copies = 0)
      : tier_(tier), free_copies_(free_copies) {}

  void Open() { open_.Notify(); }
  // Waits until a copy has arrived at the gate.
  void WaitForCopy() const { arrived_.Wait(); }
  int copies() const { return copies_.load(); }
  // Which of the copies was the layer's first, from 1; 0: none was.
  int first_copy(size_t layer_index) const {
    return first_copy_.at(layer_index).load();
  }

  absl::Status CopyRows(size_t layer_index, absl::Span<const RowId> row_ids,
                        absl::Span<std::byte> out,
                        std::vector<uint32_t>& misses) const override {
    const int ordinal = copies_.fetch_add(1) + 1;
    int none = 0;
    first_copy_.at(layer_index).compare_exchange_strong(none, ordinal);
    if (ordinal > free_copies_) {
      arrived_.Notify();
      open_.Wait();
    }
    return tier_.CopyRows(layer_index, row_ids, out, misses);
  }
  size_t row_bytes() const override { return tier_.row_bytes(); }
  size_t memory_bytes() const override { return tier_.memory_bytes(); }
  size_t huge_page_bytes() const override { return tier_.huge_page_bytes(); }

 private:
  const RowTier& tier_;
  const int free_copies_;
  mutable std::atomic<int> copies_{0};
  mutable std::array<std::atomic<int>, 2> first_copy_{};  // by layer index
  mutable Notification arrived_;
  Notification open_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_TEST_TABLE_H_
