#include <grpc/grpc.h>
#include <gtest/gtest.h>

namespace engram::test {
namespace {

// Keeps gRPC up for the life of the process. Otherwise the end of the last
// channel or server of a test shuts it down, which may wait 10 s for a thread
// that sleeps in epoll.
class GrpcEnvironment final : public ::testing::Environment {
 public:
  void SetUp() override { grpc_init(); }
};

[[maybe_unused]] const ::testing::Environment* const kEnvironment =
    ::testing::AddGlobalTestEnvironment(new GrpcEnvironment);

}  // namespace
}  // namespace engram::test
