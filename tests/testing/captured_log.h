#ifndef ENGRAM_TESTS_TESTING_CAPTURED_LOG_H_
#define ENGRAM_TESTS_TESTING_CAPTURED_LOG_H_

#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

#include "core/base/mutex.h"

namespace engram::test {

// What spdlog's default logger is told while this lives. Other threads may log
// meanwhile, not while it begins or ends.
class CapturedLog {
 public:
  CapturedLog() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("captured", sink_));
  }
  ~CapturedLog() { spdlog::set_default_logger(before_); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  std::string text() const { return sink_->text(); }

 private:
  class Sink final : public spdlog::sinks::sink {
   public:
    void log(const spdlog::details::log_msg& message) override {
      MutexLock lock(&mutex_);
      text_.append(message.payload.data(), message.payload.size());
      text_ += '\n';
    }
    void flush() override {}
    void set_pattern(const std::string&) override {}
    void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
    std::string text() const {
      MutexLock lock(&mutex_);
      return text_;
    }

   private:
    mutable Mutex mutex_;
    std::string text_ ABSL_GUARDED_BY(mutex_);
  };

  const std::shared_ptr<spdlog::logger> before_;
  const std::shared_ptr<Sink> sink_ = std::make_shared<Sink>();
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_TESTING_CAPTURED_LOG_H_
