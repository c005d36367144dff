#include "core/rpc/shutdown_signal.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>

#include "absl/time/clock.h"

namespace engram {
namespace {

// The wait status of a process of its own that does this and then exits with 0.
int StatusOf(const std::function<void()>& what) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);  // it must not outlive the test
    what();
    _exit(0);
  }
  EXPECT_GT(pid, 0);
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

bool IsKilledBy(int signal, int status) {
  return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

// As others send it: to the process, not to a thread.
void Send(int signal) {
  if (kill(getpid(), signal) != 0) std::abort();
}

void AwaitSignal(const ShutdownSignal& signal) {
  if (!signal.WaitUntil(absl::Now() + absl::Seconds(30))) std::abort();
}

TEST(ShutdownSignalTest, SeesASignalAndKeepsSeeingIt) {
  const ShutdownSignal signal;
  EXPECT_FALSE(signal.WaitUntil(absl::InfinitePast()));
  ASSERT_EQ(std::raise(SIGTERM), 0);
  EXPECT_TRUE(signal.WaitUntil(absl::InfiniteFuture()));
  EXPECT_TRUE(signal.WaitUntil(absl::InfinitePast()));
}

TEST(ShutdownSignalTest, SaysWhichItWas) {
  for (const int which : {SIGTERM, SIGINT}) {
    EXPECT_EQ(StatusOf([which] {
                ShutdownSignal signal;
                Send(which);
                AwaitSignal(signal);
                if (signal.number() != which) std::abort();
                signal.EndAtTheNext();
                if (signal.number() != which) std::abort();
              }),
              0);
  }
}

TEST(ShutdownSignalTest, TheNextSignalEndsTheProcess) {
  for (const int next : {SIGTERM, SIGINT}) {
    const int status = StatusOf([next] {
      ShutdownSignal signal;
      Send(SIGTERM);
      AwaitSignal(signal);
      signal.EndAtTheNext();
      AwaitSignal(signal);  // it is still seen
      Send(next);
    });
    EXPECT_TRUE(IsKilledBy(next, status)) << status;
  }
}

TEST(ShutdownSignalTest, WithoutANextOneTheProcessGoesOn) {
  EXPECT_EQ(StatusOf([] {
              ShutdownSignal signal;
              Send(SIGTERM);
              Send(SIGINT);  // before it says so: seen with the first
              AwaitSignal(signal);
              signal.EndAtTheNext();
            }),
            0);
}

TEST(ShutdownSignalTest, ThreadsThatBlockSignalsDoNotKeepTheNextFromIt) {
  const int status = StatusOf([] {
    ShutdownSignal signal;
    pthread_t other;  // started later: it blocks both
    const auto wait = [](void*) -> void* {
      while (true) pause();
    };
    if (pthread_create(&other, nullptr, wait, nullptr) != 0) std::abort();
    Send(SIGTERM);
    AwaitSignal(signal);
    signal.EndAtTheNext();
    Send(SIGTERM);
    while (true) pause();
  });
  EXPECT_TRUE(IsKilledBy(SIGTERM, status)) << status;
}

}  // namespace
}  // namespace engram
