#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_RPC_STARTED_GATHER_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_RPC_STARTED_GATHER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/notification.h"
#include "engram_client/rpc/table_transport.h"

namespace engram {

// A gather of rows 0, 1, ... of layer 1 of table "v", with one byte a row; what
// came is text.
class StartedGather {
 public:
  struct Options {
    size_t rows = 4;
    bool want_crc32c = false;
    absl::Time deadline = absl::InfiniteFuture();
  };

  // `gatherer`: a lane or a transport.
  template <typename Gatherer>
  StartedGather(Gatherer& gatherer, const Options& options)
      : sink_(std::make_shared<Sink>(options.rows)) {
    std::vector<RowId> ids(options.rows);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<RowId>(i);
    const std::vector<RowRun> runs = {{LayerId{1}, ids}};
    call_ = gatherer.Gather({.version = "v",
                             .runs = runs,
                             .reply_bytes = options.rows,
                             .want_crc32c = options.want_crc32c,
                             .deadline = options.deadline},
                            sink_, [state = state_](absl::Status status) {
                              EXPECT_FALSE(state->done.HasBeenNotified());
                              state->status = std::move(status);
                              state->done.Notify();
                            });
  }
  template <typename Gatherer>
  explicit StartedGather(Gatherer& gatherer)
      : StartedGather(gatherer, Options()) {}

  void Cancel() { call_->Cancel(); }

  absl::Status Wait() const {
    EXPECT_TRUE(state_->done.WaitUntil(absl::Now() + absl::Seconds(60)));
    return state_->status;
  }
  bool done() const { return state_->done.HasBeenNotified(); }
  const std::string& text() const { return sink_->text; }

 private:
  struct Sink final : RowSink {
    explicit Sink(size_t size) : text(size, '.') {}
    void Write(uint64_t offset, absl::Span<const std::byte> bytes) override {
      ASSERT_LE(offset + bytes.size(), text.size());
      std::transform(bytes.begin(), bytes.end(), text.begin() + offset,
                     [](std::byte b) { return static_cast<char>(b); });
    }
    std::string text;
  };
  struct State {
    absl::Status status;
    Notification done;
  };

  const std::shared_ptr<Sink> sink_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::shared_ptr<TransportCall> call_;
};

}  // namespace engram

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_RPC_STARTED_GATHER_H_
