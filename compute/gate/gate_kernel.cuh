#ifndef ENGRAM_COMPUTE_GATE_GATE_KERNEL_CUH_
#define ENGRAM_COMPUTE_GATE_GATE_KERNEL_CUH_

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "compute/gate/gate_args.h"
#include "compute/gate/gate_core.h"
#include "compute/gate/gate_dead_token.cuh"
#include "compute/gate/gate_shape.h"
#include "compute/gate/gate_words.cuh"
#include "core/gpu/ptx.cuh"

// Gate and add in one pass; gate_shape.h says who takes what.
//
// The time is that of memory. V4.1 with bf16 streams reads 40 KiB of streams
// and 50 KiB of kv and writes 40 KiB of streams a token: 133 KB, 31 ns at
// 4.3 TB/s. So a thread asks for ten words of stream and ten of key before it
// needs the first one, 5 KiB a warp and 100 KiB an SM, and for twenty of the
// value before the sums are reduced. Streams stay in shared memory between the
// sums and the add; weights stay in L1, where the streams of a block find the
// value as well. A bf16 feature costs about 20 instructions, 3 of them
// conversions to double: half of what an SM does in that time.

namespace engram {

// One thread's features of one stream of a token: kWidth of every 256. Groups
// of words begin at feature `i` of the stream; a word past the last feature is
// zero. kWhole: groups are all of features or all past the last one.
template <typename Stream, uint32_t kWidth, bool kWhole>
class GateThread {
 public:
  using Bits = typename Stream::Bits;
  static constexpr uint32_t kKeyWords = GateKeyWords(kWidth);

  // `kept` has room for all groups of the stream.
  __device__ __forceinline__ GateThread(const GateArgs& args, uint32_t token,
                                        uint32_t stream, unsigned char* kept)
      : args_(args),
        token_(token),
        stream_(stream),
        first_(threadIdx.x % GateStreamThreads(kWidth) * kWidth),
        kept_(reinterpret_cast<Bits*>(kept) + first_) {}

  __device__ __forceinline__ void LoadStream(uint32_t i) {
    const Bits* const from =
        reinterpret_cast<const Bits*>(args_.streams) + StreamAt(i);
    ForEachWord<kKeyWords>(i, [&](uint32_t c, uint32_t offset, bool is_in) {
      stream_words_[c] = is_in
                             ? gpu::LoadStreaming(AsWord<kWidth>(from + offset))
                             : StreamWord{};
    });
  }

  __device__ __forceinline__ void LoadKey(uint32_t i, uint32_t kv_row) {
    const uint16_t* const from = args_.kv + KvAt(i, kv_row, stream_);
    ForEachWord<kKeyWords>(i, [&](uint32_t c, uint32_t offset, bool is_in) {
      key_words_[c] =
          is_in ? gpu::LoadStreaming(AsWord<kWidth>(from + offset)) : KvWord{};
    });
  }

  // Adds a group of stream and key to the sums, which zeros do not change, and
  // keeps the stream.
  __device__ __forceinline__ void AddSums(uint32_t i) {
    const float* const weights =
        args_.weight + uint64_t{stream_} * args_.dim + i + first_;
    ForEachWord<kKeyWords>(i, [&](uint32_t c, uint32_t offset, bool is_in) {
      float weight[kWidth] = {};
      if (is_in) LoadWeights(weights + offset, weight);
      *AsWord<kWidth>(kept_ + i + offset) = stream_words_[c];
      float h[kWidth];
      float k[kWidth];
      Stream::Unpack(stream_words_[c], h);
      Bf16Words::Unpack(key_words_[c], k);
#pragma unroll
      for (uint32_t j = 0; j < kWidth; ++j) {
        // The squares are exact, so that the one rounding is that of the sum.
        stream_square_[j] = fma(double{h[j]}, double{h[j]}, stream_square_[j]);
        key_square_[j] = fma(double{k[j]}, double{k[j]}, key_square_[j]);
        dot_[j] += GateDotTerm(h[j], weight[j], k[j]);
      }
    });
  }

  // The warp's sums, in every lane. All lanes must come.
  __device__ __forceinline__ GateSums WarpSums() const {
    return {WarpSum(stream_square_), WarpSum(key_square_), WarpSum(dot_)};
  }

  __device__ __forceinline__ void LoadValue(uint32_t i, uint32_t kv_row) {
    const uint16_t* const from = args_.kv + KvAt(i, kv_row, args_.hc_mult);
    ForEachWord<kGateValueWords>(
        i, [&](uint32_t c, uint32_t offset, bool is_in) {
          value_words_[c] =
              is_in ? gpu::LoadCached(AsWord<kWidth>(from + offset)) : KvWord{};
        });
  }

  // `out_streams` may be `streams`, which nobody reads any more.
  __device__ __forceinline__ void StoreStream(uint32_t i, float gate) {
    Bits* const to = reinterpret_cast<Bits*>(args_.out_streams) + StreamAt(i);
    ForEachWord<kGateValueWords>(
        i, [&](uint32_t c, uint32_t offset, bool is_in) {
          if (!is_in) return;
          float h[kWidth];
          float v[kWidth];
          Stream::Unpack(*AsWord<kWidth>(kept_ + i + offset), h);
          Bf16Words::Unpack(value_words_[c], v);
#pragma unroll
          for (uint32_t j = 0; j < kWidth; ++j) {
            h[j] = AddGated(h[j], gate, v[j]);
          }
          gpu::StoreStreaming(AsWord<kWidth>(to + offset), Stream::Pack(h));
        });
  }

  __device__ __forceinline__ void StoreValue(uint32_t i) {
    uint16_t* const to =
        args_.out_value + uint64_t{token_} * args_.dim + i + first_;
    ForEachWord<kGateValueWords>(
        i, [&](uint32_t c, uint32_t offset, bool is_in) {
          if (is_in) {
            gpu::StoreStreaming(AsWord<kWidth>(to + offset), value_words_[c]);
          }
        });
  }

 private:
  using StreamWord = GateWord<kWidth * sizeof(Bits)>;
  using KvWord = GateWord<kWidth * sizeof(uint16_t)>;

  // Where this thread's first feature of a group stands in the streams, and in
  // kv, whose parts are the streams' keys and then the value.
  __device__ __forceinline__ uint64_t StreamAt(uint32_t i) const {
    return (uint64_t{token_} * args_.hc_mult + stream_) * args_.dim + i +
           first_;
  }
  __device__ __forceinline__ uint64_t KvAt(uint32_t i, uint32_t kv_row,
                                           uint32_t part) const {
    return (uint64_t{kv_row} * (args_.hc_mult + 1) + part) * args_.dim + i +
           first_;
  }

  // visit(word, its distance from the first, whether its features are there)
  template <uint32_t kWords, typename Visit>
  __device__ __forceinline__ void ForEachWord(uint32_t i, Visit visit) const {
    const auto left =
        static_cast<int32_t>(args_.dim) - static_cast<int32_t>(i + first_);
#pragma unroll
    for (uint32_t c = 0; c < kWords; ++c) {
      const uint32_t offset = c * kGateSums;
      visit(c, offset,
            kWhole ? i < args_.dim : static_cast<int32_t>(offset) < left);
    }
  }

  __device__ __forceinline__ static double WarpSum(
      const double (&sums)[kWidth]) {
    double sum = AddNeighbours<kWidth>(sums);
#pragma unroll
    for (uint32_t mask = 1; mask < 32; mask *= 2) {
      sum = sum + gpu::ShuffleXor(sum, mask);
    }
    return sum;
  }

  const GateArgs& args_;
  const uint32_t token_;
  const uint32_t stream_;
  const uint32_t first_;
  Bits* const kept_;
  double stream_square_[kWidth] = {};
  double key_square_[kWidth] = {};
  double dot_[kWidth] = {};
  StreamWord stream_words_[kKeyWords];
  KvWord key_words_[kKeyWords];
  KvWord value_words_[kGateValueWords];
};

// The gate of each thread's stream. All threads of the block must come.
template <uint32_t kWidth>
__device__ __forceinline__ float ReduceGate(const GateArgs& args,
                                            float inverse_sqrt_dim,
                                            const GateSums& warp_sums,
                                            double* shared, float* out_gate) {
  constexpr uint32_t kThreads = GateStreamThreads(kWidth);
  constexpr uint32_t kWarps = kThreads / 32;
  constexpr uint32_t kDoubles = GateReduceBytes(kWidth) / sizeof(double);
  double* const own = shared + threadIdx.x / kThreads * kDoubles;
  if (threadIdx.x % 32 == 0) {
    double* const sums = own + threadIdx.x % kThreads / 32;
    sums[0] = warp_sums.stream_square;
    sums[kWarps] = warp_sums.key_square;
    sums[kWarps * 2] = warp_sums.dot;
  }
  __syncthreads();
  if (threadIdx.x < blockDim.x / kThreads) {
    double* const sums = shared + threadIdx.x * kDoubles;
    const float gate = GateFromSums(
        {AddNeighbours<kWarps>(sums), AddNeighbours<kWarps>(sums + kWarps),
         AddNeighbours<kWarps>(sums + kWarps * 2)},
        args.dim, args.norm_eps, inverse_sqrt_dim);
    sums[kWarps * 3] = double{gate};
    if (out_gate != nullptr) out_gate[threadIdx.x] = gate;
  }
  __syncthreads();
  return static_cast<float>(own[kWarps * 3]);
}

// kept_bytes: of shared memory for each stream.
template <typename Stream, uint32_t kWidth, bool kWhole>
__global__ void __launch_bounds__(GateBlockThreads(kWidth),
                                  GateBlocksPerSm(kWidth,
                                                  sizeof(typename Stream::Bits),
                                                  kWhole))
    GateKernel(GateArgs args, float inverse_sqrt_dim, uint32_t kept_bytes) {
  constexpr uint32_t kThreads = GateStreamThreads(kWidth);
  const uint32_t streams = blockDim.x / kThreads;
  const uint32_t blocks_per_token = args.hc_mult / streams;
  const uint32_t token = blockIdx.x / blocks_per_token;
  const uint32_t first_stream = blockIdx.x % blocks_per_token * streams;
  const uint32_t in_block = threadIdx.x / kThreads;
  const uint32_t stream = first_stream + in_block;
  float* const out_gate =
      args.out_gate == nullptr
          ? nullptr
          : args.out_gate + uint64_t{token} * args.hc_mult + first_stream;
  const int32_t kv_row = args.live_index == nullptr
                             ? static_cast<int32_t>(token)
                             : gpu::LoadCached(args.live_index + token);
  unsigned char* const shared = gpu::SharedBytes();
  unsigned char* const kept = shared + GateReduceBytes(kWidth) * streams;
  GateThread<Stream, kWidth, kWhole> thread(args, token, stream,
                                            kept + in_block * kept_bytes);
  thread.LoadStream(0);  // while kv_row is on its way
  if (kv_row < 0) {
    StoreDeadToken<Stream, kWidth>(args, token, stream, out_gate);
    return;
  }
  thread.LoadKey(0, kv_row);
  constexpr uint32_t kKeyStep = GateKeyWords(kWidth) * kGateSums;
#pragma unroll 1
  for (uint32_t i = 0; i < args.dim;) {
    thread.AddSums(i);
    // At the end of the loop, past which no compiler can move some of them.
    i += kKeyStep;
    thread.LoadStream(i);
    thread.LoadKey(i, kv_row);
  }

  const bool stores_value = args.out_value != nullptr && stream == 0;
  const bool needs_value = args.out_streams != nullptr || stores_value;
  if (needs_value) thread.LoadValue(0, kv_row);
  const float gate =
      ReduceGate<kWidth>(args, inverse_sqrt_dim, thread.WarpSums(),
                         reinterpret_cast<double*>(shared), out_gate);
  if (!needs_value) return;
  constexpr uint32_t kValueStep = kGateValueWords * kGateSums;
#pragma unroll 1
  for (uint32_t i = 0;;) {
    if (args.out_streams != nullptr) thread.StoreStream(i, gate);
    if (stores_value) thread.StoreValue(i);
    i += kValueStep;
    if (i >= args.dim) break;
    thread.LoadValue(i, kv_row);
  }
}

// Calls launch(kernel) with the kernel of a shape.
template <typename Launch>
void VisitGateKernel(StreamDtype dtype, const GateShape& shape, Launch launch) {
  const auto visit = [&]<typename Stream>(Stream) {
    if (shape.width == 1) {
      launch(GateKernel<Stream, 1, false>);
    } else if (!shape.is_whole) {
      launch(GateKernel<Stream, 4, false>);
    } else if (shape.width == 2) {
      launch(GateKernel<Stream, 2, true>);
    } else {
      launch(GateKernel<Stream, 4, true>);
    }
  };
  dtype == StreamDtype::kBf16 ? visit(Bf16Words()) : visit(F32Words());
}

}  // namespace engram

#endif  // ENGRAM_COMPUTE_GATE_GATE_KERNEL_CUH_
