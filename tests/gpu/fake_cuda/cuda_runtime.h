#ifndef ENGRAM_TESTS_GPU_FAKE_CUDA_CUDA_RUNTIME_H_
#define ENGRAM_TESTS_GPU_FAKE_CUDA_CUDA_RUNTIME_H_

// CUDA's header has all of its API's.
#include "tests/gpu/emulator/cuda_runtime.h"
#include "tests/gpu/fake_cuda/cuda_runtime_api.h"
#include "tests/gpu/fake_cuda/launcher.h"

#endif  // ENGRAM_TESTS_GPU_FAKE_CUDA_CUDA_RUNTIME_H_
