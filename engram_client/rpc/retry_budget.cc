#include "engram_client/rpc/retry_budget.h"

#include <algorithm>
#include <cmath>

namespace engram {

RetryBudget::RetryBudget(const Options& options)
    : per_call_(std::llround(options.share * kOne)),
      burst_(int64_t{options.burst} * kOne),
      tokens_(burst_) {}

void RetryBudget::OnFirstCall() {
  int64_t tokens = tokens_.load(std::memory_order_relaxed);
  while (tokens < burst_ && !tokens_.compare_exchange_weak(
                                tokens, std::min(burst_, tokens + per_call_),
                                std::memory_order_relaxed)) {
  }
}

bool RetryBudget::TrySpend(uint32_t tokens, int64_t leave) {
  const int64_t cost = int64_t{tokens} * kOne;
  int64_t have = tokens_.load(std::memory_order_relaxed);
  do {
    if (have - cost < leave) return false;
  } while (!tokens_.compare_exchange_weak(have, have - cost,
                                          std::memory_order_relaxed));
  return true;
}

}  // namespace engram
