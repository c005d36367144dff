#ifndef ENGRAM_ENGRAM_CLIENT_RPC_RETRY_BUDGET_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_RETRY_BUDGET_H_

#include <atomic>
#include <cstdint>

namespace engram {

// Tokens for calls beyond the first ones: retries and hedges. Each first call
// adds a share of one, so servers that are in trouble do not get much more work
// because of it; a bucket of them is there for the moment when trouble begins.
//
// What has no token is not lost: a retry waits for its backoff and then needs
// none, since rows that only one server has can come no other way; a hedge is
// left out. Hedges of calls that are slow by chance leave half of the bucket
// for servers that are in trouble.
//
// Thread safety: all methods may be called concurrently; none locks.
class RetryBudget {
 public:
  struct Options {
    double share = 0.05;  // tokens for each first call
    uint32_t burst = 100;
  };

  explicit RetryBudget(const Options& options);

  void OnFirstCall();
  // All of them or none.
  bool TrySpend(uint32_t calls) { return TrySpend(calls, 0); }
  bool TrySpendUpperHalf(uint32_t calls) { return TrySpend(calls, burst_ / 2); }

  // Whole ones.
  uint32_t tokens() const {
    return static_cast<uint32_t>(tokens_.load(std::memory_order_relaxed) /
                                 kOne);
  }
  uint32_t burst() const { return static_cast<uint32_t>(burst_ / kOne); }

 private:
  static constexpr int64_t kOne = 1000;

  bool TrySpend(uint32_t tokens, int64_t leave);

  const int64_t per_call_;
  const int64_t burst_;
  std::atomic<int64_t> tokens_;  // in 1/kOne
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_RETRY_BUDGET_H_
