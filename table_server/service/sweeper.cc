#include "table_server/service/sweeper.h"

#include <utility>

#include "absl/time/time.h"

namespace engram {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(50);

}  // namespace

Sweeper::Sweeper(std::function<void()> sweep)
    : sweep_(std::move(sweep)), thread_([this] { Run(); }) {}

Sweeper::~Sweeper() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  stopped_.NotifyAll();
  thread_.join();
}

void Sweeper::Run() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (!stopping_) stopped_.WaitFor(&mutex_, kPeriod);
      if (stopping_) return;
    }
    sweep_();
  }
}

}  // namespace engram
