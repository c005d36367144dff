#ifndef ENGRAM_CORE_GPU_PTX_CUH_
#define ENGRAM_CORE_GPU_PTX_CUH_

#include <cuda_runtime.h>

#include <cstdint>

// What kernels need beyond C++, one function each. A kernel uses these and
// never an intrinsic, so that tests/gpu/emulator, which has the same functions
// in a file of this name, can run it.

namespace engram::gpu {

constexpr uint32_t kAllLanes = 0xFFFFFFFF;

// Reads, aligned to its size, and leaves L1 to others: for what is read once.
// Not the read-only kind of load (.nc): that one is moved behind stores, which
// leaves few of a batch of loads in flight, and must not read what the kernel
// writes.
__device__ __forceinline__ uint4 LoadStreaming(const uint4* from) {
  uint4 v;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

__device__ __forceinline__ uint2 LoadStreaming(const uint2* from) {
  uint2 v;
  asm volatile("ld.global.L1::no_allocate.v2.u32 {%0,%1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "l"(from));
  return v;
}

__device__ __forceinline__ uint32_t LoadStreaming(const uint32_t* from) {
  uint32_t v;
  asm volatile("ld.global.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(from));
  return v;
}

__device__ __forceinline__ uint16_t LoadStreaming(const uint16_t* from) {
  uint16_t v;
  asm volatile("ld.global.L1::no_allocate.u16 %0, [%1];" : "=h"(v) : "l"(from));
  return v;
}

__device__ __forceinline__ uint8_t LoadStreaming(const uint8_t* from) {
  uint32_t v;
  asm volatile("ld.global.L1::no_allocate.u8 %0, [%1];" : "=r"(v) : "l"(from));
  return static_cast<uint8_t>(v);
}

// Reads what nothing writes while the kernel runs and keeps it in L1: for
// what the threads of an SM share.
template <typename T>
__device__ __forceinline__ T LoadCached(const T* from) {
  return __ldg(from);
}

// Writes what is to stay in L2 for the next kernel.
template <typename T>
__device__ __forceinline__ void Store(T* to, T value) {
  *to = value;
}

// Writes what nobody reads soon.
template <typename T>
__device__ __forceinline__ void StoreStreaming(T* to, T value) {
  __stcs(to, value);
}

// d += a * b, 16x16 by 16x8 bf16, in the fragments that the PTX manual gives
// for mma.m16n8k16. All lanes of the warp must come.
__device__ __forceinline__ void MmaBf16(float (&d)[4], const uint32_t (&a)[4],
                                        const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two bf16 products, each rounded to the nearest, ties to even; subnormals
// are kept.
__device__ __forceinline__ uint32_t MulBf16x2(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

// Two floats rounded to the nearest bf16, ties to even, subnormals kept. A NaN
// becomes 0x7FFF whatever its bits were.
__device__ __forceinline__ uint32_t PackBf16x2(float low, float high) {
  uint32_t d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}

// Four of the eight bytes of `a` (0 .. 3) and `b` (4 .. 7): the lowest hex
// digit of `selector` says which is the lowest.
__device__ __forceinline__ uint32_t PermuteBytes(uint32_t a, uint32_t b,
                                                 uint32_t selector) {
  return __byte_perm(a, b, selector);
}

// The value of lane `lane` % 32. All lanes of the warp must come to a shuffle.
template <typename T>
__device__ __forceinline__ T Shuffle(T value, uint32_t lane) {
  return __shfl_sync(kAllLanes, value, static_cast<int>(lane));
}

// The value of the lane whose number is this one's ^ `mask`.
template <typename T>
__device__ __forceinline__ T ShuffleXor(T value, uint32_t mask) {
  return __shfl_xor_sync(kAllLanes, value, static_cast<int>(mask));
}

// The block's dynamic shared memory, aligned to 16 bytes.
__device__ __forceinline__ unsigned char* SharedBytes() {
  extern __shared__ uint4 engram_shared[];
  return reinterpret_cast<unsigned char*>(engram_shared);
}

// Copies to shared memory that go on beside the thread. CommitCopies closes a
// group of those it has started; WaitCopies<n> returns when at most the n
// newest groups are under way: what was copied is then the thread's to read,
// and after a barrier every thread's. A thread must wait for all its copies.
__device__ __forceinline__ void CopyAsync(uint4* shared, const uint4* from) {
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :
               : "r"(to), "l"(from)
               : "memory");
}

__device__ __forceinline__ void CommitCopies() {
  asm volatile("cp.async.commit_group;" : : : "memory");
}

template <int kUnderWay>
__device__ __forceinline__ void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kUnderWay) : "memory");
}

__device__ __forceinline__ void AtomicMin(uint32_t* address, uint32_t value) {
  atomicMin(address, value);
}

}  // namespace engram::gpu

#endif  // ENGRAM_CORE_GPU_PTX_CUH_
