#include "core/rpc/listening_sockets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "absl/strings/match.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/core/rpc/connected_socket.h"

namespace engram {
namespace {

using test::ConnectedSocket;
using test::IsError;
using test::IsOk;
using test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

std::string PortOf(const ListeningSockets& sockets) {
  const std::string& address = sockets.address();
  return address.substr(address.rfind(':') + 1);
}

TEST(ListeningSocketsTest, TakesAFreePort) {
  const auto sockets = ListeningSockets::Open("127.0.0.1:0");
  ASSERT_THAT(sockets, IsOk());
  EXPECT_THAT((*sockets)->fds(), SizeIs(1));
  EXPECT_NE(PortOf(**sockets), "0");
  EXPECT_TRUE(ConnectedSocket((*sockets)->address()).ok());
}

TEST(ListeningSocketsTest, APortInUseIsNotShared) {
  const auto first = ListeningSockets::Open("127.0.0.1:0");
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(ListeningSockets::Open((*first)->address()),
              IsError(kUnavailable, AllOf(HasSubstr((*first)->address()),
                                          HasSubstr("already in use"))));
  EXPECT_THAT(WhyNotBound((*first)->address()),
              "the address is already in use");
}

TEST(ListeningSocketsTest, APortIsFreeOnceItsSocketsAreGone) {
  auto first = ListeningSockets::Open("127.0.0.1:0");
  ASSERT_THAT(first, IsOk());
  const std::string address = (*first)->address();
  // So that a connection of it is left in TIME_WAIT.
  { const ConnectedSocket connected(address); }
  first->reset();
  EXPECT_THAT(ListeningSockets::Open(address), IsOk());
}

TEST(ListeningSocketsTest, AllAddressesOfAHostHaveOnePort) {
  const auto sockets = ListeningSockets::Open("localhost:0");
  ASSERT_THAT(sockets, IsOk());
  EXPECT_TRUE(absl::StartsWith((*sockets)->address(), "localhost:"));
  EXPECT_TRUE(ConnectedSocket("127.0.0.1:" + PortOf(**sockets)).ok());
}

TEST(ListeningSocketsTest, AllAddressesOfAMachineAreOfBothKinds) {
  for (const std::string host : {"0.0.0.0", "[::]"}) {
    const auto sockets = ListeningSockets::Open(host + ":0");
    ASSERT_THAT(sockets, IsOk()) << host;
    EXPECT_TRUE(absl::StartsWith((*sockets)->address(), host + ":"));
    EXPECT_TRUE(ConnectedSocket("127.0.0.1:" + PortOf(**sockets)).ok()) << host;
  }
}

TEST(ListeningSocketsTest, SaysWhyNot) {
  EXPECT_THAT(ListeningSockets::Open("no-port"),
              IsError(kUnavailable, HasSubstr("no-port: the address has no")));
  EXPECT_THAT(ListeningSockets::Open("192.0.2.1:0"),
              IsError(kUnavailable, HasSubstr("Cannot assign requested")));
  EXPECT_THAT(ListeningSockets::Open("unix:/nowhere/at/all/s"),
              IsError(kUnavailable, HasSubstr("No such file or directory")));
}

TEST(ListeningSocketsTest, ASocketFileThatNobodyListensAtIsTakenOver) {
  const TempDir dir;
  const std::string address = "unix:" + dir.File("s");
  auto first = ListeningSockets::Open(address);
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(ListeningSockets::Open(address),
              IsError(kUnavailable, HasSubstr("already in use by a server")));
  ASSERT_EQ(link(dir.File("s").c_str(), dir.File("left").c_str()), 0);
  first->reset();
  EXPECT_NE(access(dir.File("s").c_str(), F_OK), 0);
  // As a server that was killed leaves it.
  const auto second = ListeningSockets::Open("unix:" + dir.File("left"));
  ASSERT_THAT(second, IsOk());
  EXPECT_TRUE(ConnectedSocket((*second)->address()).ok());
}

TEST(ListeningSocketsTest, WhatIsNoSocketStays) {
  const TempDir dir;
  const std::string path = dir.Write("precious", "data");
  EXPECT_THAT(ListeningSockets::Open("unix:" + path),
              IsError(kUnavailable, HasSubstr("no socket")));
  EXPECT_EQ(test::ReadAll(path), "data");
}

TEST(ListeningSocketsTest, ASocketFileOfAnotherStays) {
  const TempDir dir;
  const std::string path = dir.File("s");
  auto first = ListeningSockets::Open("unix:" + path);
  ASSERT_THAT(first, IsOk());
  ASSERT_EQ(rename(path.c_str(), dir.File("old").c_str()), 0);
  const auto second = ListeningSockets::Open("unix:" + path);
  ASSERT_THAT(second, IsOk());
  first->reset();
  EXPECT_TRUE(ConnectedSocket("unix:" + path).ok());
}

}  // namespace
}  // namespace engram
