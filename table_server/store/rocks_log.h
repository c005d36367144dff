#ifndef ENGRAM_TABLE_SERVER_STORE_ROCKS_LOG_H_
#define ENGRAM_TABLE_SERVER_STORE_ROCKS_LOG_H_

#include <rocksdb/env.h>

#include <cstdarg>
#include <cstdio>
#include <string>
#include <utility>

#include "core/base/log.h"

namespace engram {

// What RocksDB has to say, in this process's log. Its own is a file, and with
// one it ends the process when the disk is full: some builds of it assert that
// a file that could not be written to is not written to again.
//
// Thread safety: all methods may be called concurrently.
class RocksLog final : public rocksdb::Logger {
 public:
  explicit RocksLog(std::string dir)
      : Logger(rocksdb::WARN_LEVEL), dir_(std::move(dir)) {}

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list values) override {
    char line[1024];  // longer ones are cut
    std::vsnprintf(line, sizeof(line), format, values);
    spdlog::warn("{}: {}", dir_, line);
  }

 private:
  const std::string dir_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_ROCKS_LOG_H_
