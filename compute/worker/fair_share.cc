#include "compute/worker/fair_share.h"

#include "core/base/check.h"

namespace engram {
namespace {

constexpr uint64_t FreeFor(uint64_t held) {
  return held / FairShare::kTimesFree +
         (held % FairShare::kTimesFree == 0 ? 0 : 1);
}

}  // namespace

FairShare::Verdict FairShare::Judge(uint64_t held, uint64_t amount,
                                    uint64_t used, uint64_t limit) {
  const uint64_t left = limit - used;
  if (amount > left) return Verdict::kFull;
  if (held == 0 || amount == 0) return Verdict::kTaken;
  return left - amount >= FreeFor(held + amount) ? Verdict::kTaken
                                                 : Verdict::kAboveShare;
}

uint64_t FairShare::LimitFor(uint64_t amount) {
  return amount + FreeFor(amount);
}

FairShare::Verdict FairShare::Take(const CallerId& caller, uint64_t amount) {
  const Verdict verdict = Judge(HeldBy(caller), amount, used_, limit_);
  if (verdict != Verdict::kTaken || amount == 0) return verdict;
  held_[caller] += amount;
  used_ += amount;
  return verdict;
}

void FairShare::Give(const CallerId& caller, uint64_t amount) {
  if (amount == 0) return;
  const auto held = held_.find(caller);
  ENGRAM_CHECK(held != held_.end() && held->second >= amount);
  used_ -= amount;
  held->second -= amount;
  if (held->second == 0) held_.erase(held);
}

uint64_t FairShare::HeldBy(const CallerId& caller) const {
  const auto held = held_.find(caller);
  return held == held_.end() ? 0 : held->second;
}

}  // namespace engram
