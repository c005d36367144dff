// That work which nothing waits for has not been done, and the rest of what
// makes a mistake of ours show.

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace {

class FakeCudaTest : public testing::Test {
 protected:
  // Before anything of the fake is used: it reads the mode once.
  static void SetUpTestSuite() { setenv("ENGRAM_FAKE_CUDA", "lazy", 1); }

  FakeCudaTest() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&one_, cudaStreamNonBlocking), 0);
    EXPECT_EQ(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking), 0);
    EXPECT_EQ(cudaEventCreate(&event_), 0);
    EXPECT_EQ(cudaMalloc(&device_, kBytes), 0);
    EXPECT_EQ(cudaHostAlloc(&pinned_, kBytes, cudaHostAllocPortable), 0);
  }
  ~FakeCudaTest() override {
    cudaFree(device_);
    cudaFreeHost(pinned_);
    cudaEventDestroy(event_);
    cudaStreamDestroy(one_);
    cudaStreamDestroy(other_);
  }

  // What the device's memory holds now, whatever is under way.
  char DeviceByte() const { return *static_cast<const char*>(device_); }

  static constexpr size_t kBytes = 64;
  cudaStream_t one_ = nullptr;
  cudaStream_t other_ = nullptr;
  cudaEvent_t event_ = nullptr;
  void* device_ = nullptr;
  void* pinned_ = nullptr;
};

TEST_F(FakeCudaTest, WorkIsDoneWhenSomethingWaits) {
  ASSERT_EQ(cudaMemsetAsync(device_, 1, kBytes, one_), 0);
  EXPECT_NE(DeviceByte(), 1);
  ASSERT_EQ(cudaStreamSynchronize(other_), 0);
  EXPECT_NE(DeviceByte(), 1);
  ASSERT_EQ(cudaStreamSynchronize(one_), 0);
  EXPECT_EQ(DeviceByte(), 1);
}

TEST_F(FakeCudaTest, AnEventOrdersStreams) {
  ASSERT_EQ(cudaMemsetAsync(device_, 2, kBytes, one_), 0);
  ASSERT_EQ(cudaEventRecord(event_, one_), 0);
  ASSERT_EQ(cudaMemsetAsync(device_, 3, kBytes, one_), 0);
  ASSERT_EQ(cudaStreamWaitEvent(other_, event_), 0);
  ASSERT_EQ(cudaStreamSynchronize(other_), 0);
  EXPECT_EQ(DeviceByte(), 2);  // up to the event and no further
}

TEST_F(FakeCudaTest, PinnedMemoryIsReadWhenTheCopyRuns) {
  std::memset(pinned_, 4, kBytes);
  ASSERT_EQ(
      cudaMemcpyAsync(device_, pinned_, kBytes, cudaMemcpyHostToDevice, one_),
      0);
  std::memset(pinned_, 5, kBytes);  // too early
  ASSERT_EQ(cudaStreamSynchronize(one_), 0);
  EXPECT_EQ(DeviceByte(), 5);
}

TEST_F(FakeCudaTest, OtherMemoryIsReadAtTheCall) {
  std::string text(kBytes, 6);
  ASSERT_EQ(cudaMemcpyAsync(device_, text.data(), kBytes,
                            cudaMemcpyHostToDevice, one_),
            0);
  text.assign(kBytes, 7);
  ASSERT_EQ(cudaMemcpyAsync(text.data(), device_, kBytes,
                            cudaMemcpyDeviceToHost, one_),
            0);
  EXPECT_EQ(text[0], 6);
}

TEST_F(FakeCudaTest, AGraphRunsAtItsLaunches) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(one_, cudaStreamCaptureModeThreadLocal), 0);
  ASSERT_EQ(cudaMemsetAsync(device_, 8, kBytes, one_), 0);
  EXPECT_NE(cudaStreamSynchronize(one_), 0);  // not while it is recorded
  ASSERT_EQ(cudaStreamEndCapture(one_, &graph), 0);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), 0);
  ASSERT_EQ(cudaGraphDestroy(graph), 0);
  ASSERT_EQ(cudaStreamSynchronize(one_), 0);
  EXPECT_NE(DeviceByte(), 8);
  ASSERT_EQ(cudaGraphLaunch(executable, other_), 0);
  ASSERT_EQ(cudaStreamSynchronize(other_), 0);
  EXPECT_EQ(DeviceByte(), 8);
  EXPECT_EQ(cudaGraphExecDestroy(executable), 0);
  EXPECT_NE(cudaGetLastError(), 0);
}

TEST_F(FakeCudaTest, MemoryThatIsNotTheDevicesIsRefused) {
  char host[kBytes] = {};
  EXPECT_EQ(cudaMemcpy(host, host, kBytes, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(device_, 0, kBytes + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(host), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(FakeCudaTest, AnEventPassesWithItsStream) {
  float ms = 0;
  cudaEvent_t end = nullptr;
  ASSERT_EQ(cudaEventCreate(&end), 0);
  ASSERT_EQ(cudaEventRecord(event_, one_), 0);
  ASSERT_EQ(cudaEventRecord(end, one_), 0);
  EXPECT_EQ(cudaEventElapsedTime(&ms, event_, end), cudaErrorNotReady);
  while (cudaEventQuery(end) == cudaErrorNotReady) {
  }
  EXPECT_EQ(cudaEventElapsedTime(&ms, event_, end), cudaSuccess);
  EXPECT_GE(ms, 0);
  EXPECT_EQ(cudaEventDestroy(end), 0);
}

}  // namespace
