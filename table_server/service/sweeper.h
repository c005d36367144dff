#ifndef ENGRAM_TABLE_SERVER_SERVICE_SWEEPER_H_
#define ENGRAM_TABLE_SERVER_SERVICE_SWEEPER_H_

#include <functional>
#include <thread>

#include "core/base/mutex.h"

namespace engram {

// A thread that does one small thing every 50 ms, until it is destroyed.
class Sweeper {
 public:
  explicit Sweeper(std::function<void()> sweep);
  ~Sweeper();
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

 private:
  void Run();

  const std::function<void()> sweep_;
  Mutex mutex_;
  CondVar stopped_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_SWEEPER_H_
