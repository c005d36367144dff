#include "core/rpc/admin_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <prometheus/counter.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// One HTTP request on a connection of its own; the whole reply.
std::string Send(const std::string& address, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port =
      htons(std::atoi(address.substr(address.rfind(':') + 1).c_str()));
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0) return "";
  EXPECT_EQ(write(fd, request.data(), request.size()),
            static_cast<ssize_t>(request.size()));
  std::string reply;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) {
    reply.append(buffer, n);
  }
  close(fd);
  return reply;
}

std::string Get(const std::string& address, const std::string& path) {
  return Send(address, "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
}

TEST(AdminServerTest, ServesMetricsAfterTheHook) {
  const auto registry = std::make_shared<prometheus::Registry>();
  AddBuildInfo(*registry, "test");
  auto& counter = prometheus::BuildCounter()
                      .Name("engram_test_total")
                      .Help("Of this test.")
                      .Register(*registry)
                      .Add({});
  const auto server = AdminServer::Start(
      {.listen = "127.0.0.1:0", .registry = registry, .before_scrape = [&] {
         counter.Increment();
       }});
  ASSERT_THAT(server, IsOk());
  EXPECT_THAT(
      Get((*server)->address(), "/metrics"),
      AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("engram_test_total 1\n"),
            HasSubstr("engram_build_info{"), HasSubstr("component=\"test\"")));
  EXPECT_THAT(Get((*server)->address(), "/metrics"),
              HasSubstr("engram_test_total 2\n"));
}

TEST(AdminServerTest, TellsHealthAndReadiness) {
  std::string reason = "loading";
  const auto server = AdminServer::Start(
      {.listen = "127.0.0.1:0", .not_ready_reason = [&] { return reason; }});
  ASSERT_THAT(server, IsOk());
  const std::string& address = (*server)->address();
  EXPECT_THAT(Get(address, "/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get(address, "/readyz"),
              AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("loading")));
  reason.clear();
  EXPECT_THAT(Get(address, "/readyz"), StartsWith("HTTP/1.1 200"));
}

TEST(AdminServerTest, RefusesOtherPathsAndMethods) {
  const auto server = AdminServer::Start({.listen = "127.0.0.1:0"});
  ASSERT_THAT(server, IsOk());
  const std::string& address = (*server)->address();
  EXPECT_THAT(Get(address, "/"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get(address, "/etc/passwd"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Send(address,
                   "POST /metrics HTTP/1.1\r\nHost: x\r\n"
                   "Content-Length: 0\r\n\r\n"),
              StartsWith("HTTP/1.1 405"));
}

TEST(AdminServerTest, RefusesAPortInUseAndBadAddresses) {
  const auto first = AdminServer::Start({.listen = "127.0.0.1:0"});
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(AdminServer::Start({.listen = (*first)->address()}),
              IsError(absl::StatusCode::kUnavailable,
                      AllOf(HasSubstr((*first)->address()),
                            HasSubstr("already in use"))));
  EXPECT_THAT(
      AdminServer::Start({.listen = "unix:/x"}),
      IsError(absl::StatusCode::kInvalidArgument, HasSubstr("only HOST:PORT")));
  EXPECT_THAT(AdminServer::Start({.listen = "9000"}),
              IsError(absl::StatusCode::kInvalidArgument, HasSubstr("9000")));
}

}  // namespace
}  // namespace engram
