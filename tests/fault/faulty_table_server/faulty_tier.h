#ifndef ENGRAM_TESTS_FAULT_FAULTY_TABLE_SERVER_FAULTY_TIER_H_
#define ENGRAM_TESTS_FAULT_FAULTY_TABLE_SERVER_FAULTY_TIER_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "table_server/tier/row_tier.h"
#include "tests/fault/faulty_table_server/tier_faults.h"

namespace engram::fault {

// Another tier's rows: late, not at all, or with bits turned. Blocks the
// thread that asks, or, of rows that have to be fetched, the one that has got
// them, as a slow disk would.
//
// A turned bit is in the row before the server sums what it sends, so the
// reply's CRC is right and only who knows the row can tell. The TCP proxy
// turns bits behind the sum.
class FaultyTier final : public RowTier {
 public:
  // `faults` must outlive the tier.
  FaultyTier(std::unique_ptr<RowTier> tier, TierFaults& faults)
      : tier_(std::move(tier)), faults_(faults) {}

  absl::Status CopyRows(size_t layer_index, absl::Span<const RowId> row_ids,
                        absl::Span<std::byte> out,
                        std::vector<uint32_t>& misses) const override;
  absl::Status ScanRows(size_t layer_index, absl::Span<const RowId> row_ids,
                        absl::Span<std::byte> out,
                        std::vector<uint32_t>& misses) const override;
  void Fetch(RowFetch fetch, OnRows done) const override;
  size_t row_bytes() const override { return tier_->row_bytes(); }
  size_t memory_bytes() const override { return tier_->memory_bytes(); }
  size_t huge_page_bytes() const override { return tier_->huge_page_bytes(); }

 private:
  // What is at hand, as the faults have it.
  absl::Status Spoil(size_t rows, absl::Span<std::byte> out,
                     absl::FunctionRef<absl::Status()> copy) const;

  const std::unique_ptr<RowTier> tier_;
  TierFaults& faults_;
};

}  // namespace engram::fault

#endif  // ENGRAM_TESTS_FAULT_FAULTY_TABLE_SERVER_FAULTY_TIER_H_
