#include "core/rpc/acceptor.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "tests/testing/eventually.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/core/rpc/connected_socket.h"

namespace engram {
namespace {

using test::ConnectedSocket;
using test::Eventually;
using test::IsOk;

// Far more than a test takes, were it waited for.
constexpr double kNever = 1e-6;

class AcceptorTest : public ::testing::Test {
 protected:
  ~AcceptorTest() override {
    acceptor_.reset();
    for (const int fd : taken_) close(fd);
  }
  void Start(const Acceptor::Options& options) {
    auto sockets = ListeningSockets::Open("127.0.0.1:0");
    ASSERT_THAT(sockets, IsOk());
    address_ = (*sockets)->address();
    acceptor_ = std::make_unique<Acceptor>(*std::move(sockets), options,
                                           metrics_, [this](int fd) {
                                             MutexLock lock(&mutex_);
                                             taken_.push_back(fd);
                                           });
  }
  void Connect(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(clients_.emplace_back(address_).ok());
    }
  }
  size_t taken() const {
    MutexLock lock(&mutex_);
    return taken_.size();
  }
  // The number that the next file gets.
  static int NextFile() {
    const int fd = dup(0);
    close(fd);
    return fd;
  }

  prometheus::Registry registry_;
  Acceptor::Metrics metrics_{registry_};
  std::string address_;
  std::vector<ConnectedSocket> clients_;
  mutable Mutex mutex_;
  std::vector<int> taken_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Acceptor> acceptor_;
};

TEST_F(AcceptorTest, HandsOverWhoConnects) {
  Start({});
  Connect(3);
  EXPECT_TRUE(Eventually([&] { return taken() == 3; }));
  EXPECT_EQ(metrics_.accepted.Value(), 3);
  EXPECT_GT(metrics_.max_file.Value(), 0);
  EXPECT_EQ(metrics_.max_file.Value(), Acceptor::LimitOfFiles());
}

TEST_F(AcceptorTest, ACrowdComesInAtItsPace) {
  Start({.burst = 4, .per_second = kNever});
  Connect(10);
  ASSERT_TRUE(Eventually([&] { return taken() == 4; }));
  EXPECT_FALSE(clients_.back().Closed(/*timeout_ms=*/50));
  EXPECT_EQ(taken(), 4u);
  // It does not look for the others meanwhile, but can be stopped.
  acceptor_->Stop();
  EXPECT_TRUE(clients_.back().Closed(/*timeout_ms=*/60000));
}

TEST_F(AcceptorTest, TheOthersFollow) {
  Start({.burst = 1, .per_second = 500});
  Connect(20);
  EXPECT_TRUE(Eventually([&] { return taken() == 20; }));
}

TEST_F(AcceptorTest, TooManyFilesAreRefused) {
  Start({.max_file = NextFile() + 40});
  Connect(5);
  ASSERT_TRUE(Eventually([&] { return taken() == 5; }));
  Connect(55);  // whose own files take the numbers up, too
  EXPECT_TRUE(clients_.back().Closed(/*timeout_ms=*/60000));
  EXPECT_TRUE(Eventually([&] {
    return metrics_.refused.Value() + metrics_.accepted.Value() == 60;
  }));
  const double accepted = metrics_.accepted.Value();
  EXPECT_LT(accepted, 40);
  // Those who were there before stay, and when some go others may come.
  EXPECT_FALSE(clients_.front().Closed(/*timeout_ms=*/0));
  while (clients_.size() > 5) clients_.pop_back();
  {
    MutexLock lock(&mutex_);
    for (; taken_.size() > 5; taken_.pop_back()) close(taken_.back());
  }
  const ConnectedSocket late(address_);
  EXPECT_TRUE(Eventually([&] { return metrics_.accepted.Value() > accepted; }));
}

// As when something else has opened all files that there may be.
TEST_F(AcceptorTest, GoesOnOnceThereAreFilesAgain) {
  Start({.max_file = 1 << 20});
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  ConnectedSocket first(address_);
  ASSERT_TRUE(Eventually([&] { return taken() == 1; }));
  // The client's socket is there before the files run out.
  clients_.emplace_back(address_);
  ASSERT_TRUE(Eventually([&] { return taken() == 2; }));
  rlimit none = before;
  none.rlim_cur = NextFile() + 1;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  clients_.emplace_back(address_);  // takes the last one
  EXPECT_TRUE(Eventually([&] { return metrics_.failures.Value() > 0; }));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(Eventually([&] { return taken() == 3; }));
}

}  // namespace
}  // namespace engram
