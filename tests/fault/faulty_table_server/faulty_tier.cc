#include "tests/fault/faulty_table_server/faulty_tier.h"

#include <algorithm>
#include <random>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"

namespace engram::fault {
namespace {

void FlipBits(const TierFaults::Plan& plan, size_t row_bytes,
              absl::Span<std::byte> rows) {
  if (plan.flip_share == 0) return;
  std::mt19937_64 random(plan.seed);
  std::bernoulli_distribution chosen(plan.flip_share);
  for (size_t at = 0; at < rows.size(); at += row_bytes) {
    if (!chosen(random)) continue;
    const uint64_t bit = random() % (8 * row_bytes);
    rows[at + bit / 8] ^= std::byte{1} << bit % 8;
  }
}

}  // namespace

absl::Status FaultyTier::CopyRows(size_t layer_index,
                                  absl::Span<const RowId> row_ids,
                                  absl::Span<std::byte> out,
                                  std::vector<uint32_t>& misses) const {
  return Spoil(row_ids.size(), out, [&] {
    return tier_->CopyRows(layer_index, row_ids, out, misses);
  });
}

absl::Status FaultyTier::ScanRows(size_t layer_index,
                                  absl::Span<const RowId> row_ids,
                                  absl::Span<std::byte> out,
                                  std::vector<uint32_t>& misses) const {
  return Spoil(row_ids.size(), out, [&] {
    return tier_->ScanRows(layer_index, row_ids, out, misses);
  });
}

absl::Status FaultyTier::Spoil(size_t rows, absl::Span<std::byte> out,
                               absl::FunctionRef<absl::Status()> copy) const {
  const absl::Time start = absl::Now();
  const TierFaults::Plan plan = faults_.Next(rows, start);
  ENGRAM_RETURN_IF_ERROR(plan.failure);
  ENGRAM_RETURN_IF_ERROR(copy());
  FlipBits(plan, tier_->row_bytes(), out);
  absl::Time end = plan.earliest;
  if (plan.slow_factor > 1) {
    const absl::Duration healthy =
        std::max(absl::Now() - start, TierFaults::kLeastSlowTime);
    end = std::max(end, start + plan.slow_factor * healthy);
  }
  if (end > absl::Now()) faults_.WaitUntil(end, plan.switches);
  return absl::OkStatus();
}

void FaultyTier::Fetch(RowFetch fetch, OnRows done) const {
  const absl::Time start = absl::Now();
  tier_->Fetch(
      std::move(fetch), [this, start, plan = faults_.NextFetch(),
                         done = std::move(done)](absl::Status status) mutable {
        const absl::Duration healthy =
            std::max(absl::Now() - start, TierFaults::kLeastSlowTime);
        if (plan.slow_factor > 1) {
          faults_.WaitUntil(start + plan.slow_factor * healthy, plan.switches);
        }
        done(plan.failure.ok() ? std::move(status) : std::move(plan.failure));
      });
}

}  // namespace engram::fault
