#ifndef ENGRAM_TESTS_TESTING_FIXED_WINDOW_H_
#define ENGRAM_TESTS_TESTING_FIXED_WINDOW_H_

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

namespace engram::test {

// A caller that reads nothing is sent 64 kB and no more: otherwise gRPC lets
// the window grow with what the connection could carry, and a test that needs
// the sender to stop fails now and then.
inline std::shared_ptr<grpc::Channel> ChannelWithFixedWindow(
    const std::string& address) {
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   args);
}

}  // namespace engram::test

#endif  // ENGRAM_TESTS_TESTING_FIXED_WINDOW_H_
