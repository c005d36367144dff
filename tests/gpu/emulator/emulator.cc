#include "tests/gpu/emulator/emulator.h"

#include <cuda_runtime.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "core/base/check.h"
#include "tests/gpu/emulator/collective.h"
#include "tests/gpu/emulator/copies.h"
#include "tests/gpu/emulator/fiber.h"

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace engram::emulator {
namespace {

constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kMaxWarps = kMaxThreads / kWarpLanes;
constexpr uint32_t kMaxSharedBytes = 227 * 1024;  // of a block, sm_90
constexpr uint32_t kAllLanes = 0xFFFFFFFF;
constexpr size_t kStackBytes = size_t{256} << 10;

struct Thread {
  explicit Thread(void (*body)());

  std::unique_ptr<Fiber> fiber;
  uint3 index = {};
  uint32_t number = 0;  // in the block
  const char* waits_in = nullptr;
  bool returned = false;
};

// Stacks are never given back: the next launch uses them again. A page that
// cannot be touched lies below each.
Thread::Thread(void (*body)()) {
  const size_t guard = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const stack = mmap(nullptr, guard + kStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ENGRAM_CHECK(stack != MAP_FAILED);
  ENGRAM_CHECK(mprotect(stack, guard, PROT_NONE) == 0);
  fiber = std::make_unique<Fiber>(static_cast<std::byte*>(stack) + guard,
                                  kStackBytes, body);
}

struct Warp {
  uint32_t ready = 0;    // lanes that can run
  uint32_t waiting = 0;  // lanes that wait in `complete`
  void (*complete)(WarpOperands) = nullptr;
  const char* name = nullptr;
  void* operands[kWarpLanes] = {};
};

// The order of threads need not be uniform, only different with each seed.
class Dice {
 public:
  void Seed(uint64_t seed) {
    seed = (seed + 1) * 0x9E3779B97F4A7C15;
    state_ = (seed ^ seed >> 29) * 0xBF58476D1CE4E5B9 | 1;
  }
  // One of the bits that are set in `mask`, which is not 0.
  uint32_t PickBit(uint32_t mask) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    const int start = static_cast<int>(state_ >> 59);
    return (std::countr_zero(std::rotr(mask, start)) + start) % 32;
  }

 private:
  uint64_t state_ = 1;
};

// Runs the blocks of a grid. A thread that must wait picks the next to run
// and switches to it; the last of the block switches back to Run.
class Machine {
 public:
  void Run(const LaunchShape& shape, uint64_t seed, void (*thread)(const void*),
           const void* call);
  void Collective(const char* name, void* operand,
                  void (*complete)(WarpOperands));
  void Barrier();
  std::byte* shared() { return shared_; }
  [[noreturn]] void Fail(const char* what) const;

 private:
  static void ThreadBody();
  void Prepare(const LaunchShape& shape);
  void RunBlock();
  void ThreadReturned();
  Thread& PickNext();
  void RunOthers();
  [[noreturn]] void FailStuck() const;
  [[noreturn]] void FailStuck(const Thread& waiting,
                              const Thread& missing) const;

  std::vector<std::unique_ptr<Thread>> threads_;
  Fiber main_;
  Warp warps_[kMaxWarps];
  uint32_t ready_warps_ = 0;  // a superset of those with ready lanes
  uint32_t warp_ = 0;         // that runs
  uint32_t thread_count_ = 0;
  uint32_t at_barrier_ = 0;
  uint32_t returned_ = 0;
  Thread* current_ = nullptr;
  Dice dice_;
  std::byte* shared_ = nullptr;
  size_t shared_bytes_ = 0;
  void (*body_)(const void*) = nullptr;
  const void* call_ = nullptr;
};

Machine& TheMachine() {
  static Machine* const machine = new Machine;
  return *machine;
}

void Machine::Fail(const char* what) const {
  std::fprintf(stderr, "emulator: block (%u,%u,%u) thread (%u,%u): %s\n",
               blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y,
               what);
  std::fflush(stderr);
  std::abort();
}

void Machine::FailStuck(const Thread& waiting, const Thread& missing) const {
  std::fprintf(stderr,
               "emulator: block (%u,%u,%u) thread (%u,%u) waits in %s, which "
               "thread (%u,%u) does not reach: it %s%s\n",
               blockIdx.x, blockIdx.y, blockIdx.z, waiting.index.x,
               waiting.index.y, waiting.waits_in, missing.index.x,
               missing.index.y, missing.returned ? "returned" : "waits in ",
               missing.returned ? "" : missing.waits_in);
  std::fflush(stderr);
  std::abort();
}

// No thread can run. Either a warp-wide operation lacks a lane, or
// __syncthreads a thread.
void Machine::FailStuck() const {
  const Thread* waiting = nullptr;
  const Thread* missing = nullptr;
  for (uint32_t i = 0; i < thread_count_; ++i) {
    const Warp& warp = warps_[i / kWarpLanes];
    const Thread& thread = *threads_[i];
    if (warp.waiting != 0) {
      const uint32_t warp_first = i - i % kWarpLanes;
      FailStuck(*threads_[warp_first + std::countr_zero(warp.waiting)],
                *threads_[warp_first + std::countr_zero(~warp.waiting)]);
    }
    (thread.returned ? missing : waiting) = &thread;
  }
  FailStuck(*waiting, *missing);
}

void Machine::ThreadBody() {
  Machine& machine = TheMachine();
  for (;;) {  // once a block
    machine.body_(machine.call_);
    machine.ThreadReturned();
  }
}

// The next thread to run: of this warp while it has one, so that a warp gets
// far ahead of the others.
Thread& Machine::PickNext() {
  while (warps_[warp_].ready == 0) {
    ready_warps_ &= ~(uint32_t{1} << warp_);
    if (ready_warps_ == 0) FailStuck();
    warp_ = dice_.PickBit(ready_warps_);
  }
  const uint32_t lane = dice_.PickBit(warps_[warp_].ready);
  warps_[warp_].ready &= ~(uint32_t{1} << lane);
  return *threads_[warp_ * kWarpLanes + lane];
}

void Machine::RunOthers() {
  Thread& next = PickNext();
  Thread& self = *current_;
  if (&next == &self) return;
  current_ = &next;
  threadIdx = next.index;
  Fiber::Switch(*self.fiber, *next.fiber);
}

void Machine::ThreadReturned() {
  if (!NoCopiesUnderWay(current_->number)) {
    Fail("returned without waiting for its copies");
  }
  current_->returned = true;
  if (++returned_ < thread_count_) {
    RunOthers();
  } else {
    Fiber::Switch(*current_->fiber, main_);
  }
}

void Machine::Collective(const char* name, void* operand,
                         void (*complete)(WarpOperands)) {
  Warp& warp = warps_[warp_];
  const uint32_t lane = current_->number % kWarpLanes;
  if (warp.waiting == 0) {
    warp.complete = complete;
    warp.name = name;
  } else if (warp.complete != complete) {
    std::fprintf(stderr, "emulator: a lane in %s, others of its warp in %s\n",
                 name, warp.name);
    Fail("divergent warp");
  }
  warp.operands[lane] = operand;
  warp.waiting |= uint32_t{1} << lane;
  current_->waits_in = name;
  if (warp.waiting == kAllLanes) {
    complete(warp.operands);
    warp.waiting = 0;
    warp.ready = kAllLanes;
    ready_warps_ |= uint32_t{1} << warp_;
    warp_ = dice_.PickBit(ready_warps_);
  }
  RunOthers();
}

void Machine::Barrier() {
  current_->waits_in = "__syncthreads";
  if (++at_barrier_ == thread_count_) {
    at_barrier_ = 0;
    const uint32_t warps = thread_count_ / kWarpLanes;
    for (uint32_t i = 0; i < warps; ++i) warps_[i].ready = kAllLanes;
    ready_warps_ = kAllLanes >> (kMaxWarps - warps);
    warp_ = dice_.PickBit(ready_warps_);
  }
  RunOthers();
}

void Machine::RunBlock() {
  if (shared_bytes_ > 0) std::memset(shared_, 0xFF, shared_bytes_);
  const uint32_t warps = thread_count_ / kWarpLanes;
  for (uint32_t i = 0; i < thread_count_; ++i) threads_[i]->returned = false;
  for (uint32_t i = 0; i < warps; ++i) warps_[i].ready = kAllLanes;
  ready_warps_ = kAllLanes >> (kMaxWarps - warps);
  warp_ = dice_.PickBit(ready_warps_);
  returned_ = 0;
  current_ = &PickNext();
  threadIdx = current_->index;
  Fiber::Switch(main_, *current_->fiber);
}

void Machine::Prepare(const LaunchShape& shape) {
  thread_count_ = shape.block_x * shape.block_y;
  while (threads_.size() < thread_count_) {
    threads_.push_back(std::make_unique<Thread>(&ThreadBody));
    threads_.back()->number = static_cast<uint32_t>(threads_.size() - 1);
  }
  for (uint32_t i = 0; i < thread_count_; ++i) {
    threads_[i]->index = {i % shape.block_x, i / shape.block_x, 0};
  }
  blockDim = {shape.block_x, shape.block_y, 1};
  gridDim = {shape.grid_x, shape.grid_y, shape.grid_z};
}

void Machine::Run(const LaunchShape& shape, uint64_t seed,
                  void (*thread)(const void*), const void* call) {
  Prepare(shape);
  body_ = thread;
  call_ = call;
  // Exactly so large, for AddressSanitizer.
  shared_bytes_ = shape.shared_bytes;
  const auto shared = std::make_unique<std::byte[]>(shared_bytes_);
  shared_ = shared.get();
  CheckAligned(shared_, 16);
  const uint64_t blocks = uint64_t{shape.grid_x} * shape.grid_y * shape.grid_z;
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t block = seed % 2 == 0 ? i : blocks - 1 - i;
    blockIdx.x = static_cast<uint32_t>(block % shape.grid_x);
    blockIdx.y = static_cast<uint32_t>(block / shape.grid_x % shape.grid_y);
    blockIdx.z = static_cast<uint32_t>(block / shape.grid_x / shape.grid_y);
    dice_.Seed(seed + block * 0x100000001);
    RunBlock();
  }
  shared_ = nullptr;
}

}  // namespace

void WarpCollective(const char* name, void* operand,
                    void (*complete)(WarpOperands operands)) {
  TheMachine().Collective(name, operand, complete);
}

void BlockBarrier() { TheMachine().Barrier(); }

std::byte* SharedMemory() { return TheMachine().shared(); }

void CheckAligned(const void* address, size_t alignment) {
  if (reinterpret_cast<uintptr_t>(address) % alignment != 0) {
    TheMachine().Fail("misaligned access");
  }
}

namespace internal {

void RunGrid(const LaunchShape& shape, uint64_t seed,
             void (*thread)(const void* call), const void* call) {
  const uint64_t threads = uint64_t{shape.block_x} * shape.block_y;
  ENGRAM_CHECK(shape.grid_x > 0 && shape.grid_x < uint32_t{1} << 31);
  ENGRAM_CHECK(shape.grid_y > 0 && shape.grid_y < uint32_t{1} << 16);
  ENGRAM_CHECK(shape.grid_z > 0 && shape.grid_z < uint32_t{1} << 16);
  ENGRAM_CHECK(threads > 0 && threads <= kMaxThreads);
  ENGRAM_CHECK(threads % kWarpLanes == 0);
  ENGRAM_CHECK(shape.shared_bytes <= kMaxSharedBytes);
  TheMachine().Run(shape, seed, thread, call);
}

}  // namespace internal

}  // namespace engram::emulator
