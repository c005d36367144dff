#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_LOADING_HTTP_FIXTURE_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_LOADING_HTTP_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/http/http_reader.h"
#include "core/http/scripted_http_transport.h"
#include "table_server/loading/http_table.h"
#include "table_server/loading/table_source.h"
#include "tests/testing/checkpoint_maker.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram::test {

// A HttpReader::Waiter.
inline absl::Status GoOn() { return absl::OkStatus(); }

// A checkpoint on a disk, and the same on a server in memory.
class HttpLoadingTest : public ::testing::Test {
 protected:
  HttpLoadingTest() : maker_("tiny") {
    maker_.Write(dir_.path());
    ENGRAM_CHECK(WriteManifest(dir_.path(), {.thread_count = 1}).ok());
    Upload();
  }

  // What lies in the directory now.
  void Upload() {
    auto transport = std::make_unique<ScriptedHttpTransport>();
    server_ = transport.get();
    for (const std::string& name : dir_.List()) {
      server_->files[folder_.UrlOf(name)] = ReadAll(dir_.File(name));
    }
    reader_ = std::make_unique<HttpReader>(
        std::move(transport), nullptr,
        HttpReader::Options{.max_attempts = 3, .sleep = [](absl::Duration) {}});
  }
  std::string& FileOf(const std::string& name) {
    return server_->files.at(folder_.UrlOf(name));
  }

  const TempDir dir_;
  const HttpFolder folder_ = *ParseHttpFolder("https://hub.example/m");
  CheckpointMaker maker_;
  ScriptedHttpTransport* server_ = nullptr;  // of reader_
  std::unique_ptr<HttpReader> reader_;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_LOADING_HTTP_FIXTURE_H_
