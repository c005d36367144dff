#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_RPC_SCRIPTED_SERVER_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_RPC_SCRIPTED_SERVER_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "engram_client/rpc/fake_table_server.h"
#include "engram_client/rpc/table_transport.h"

namespace engram {

// A table server whose gathers the test answers one by one, on its own thread
// or on others. Those that it leaves are cancelled at the end.
class ScriptedServer final : public TableTransport {
 public:
  class Call final : public TransportCall {
   public:
    void Cancel() override {
      MutexLock lock(&mutex_);
      cancelled_ = true;
    }
    bool cancelled() const {
      MutexLock lock(&mutex_);
      return cancelled_;
    }

    size_t row_count() const { return rows_.size(); }

    // The right bytes of rows [begin, end).
    void Write(size_t begin, size_t end) {
      std::vector<std::byte> bytes((end - begin) * FakeTable::kRowBytes);
      for (size_t i = begin; i < end; ++i) {
        FakeTable::WriteRow(rows_[i].first, rows_[i].second,
                            bytes.data() + (i - begin) * FakeTable::kRowBytes);
      }
      Sink()->Write(begin * FakeTable::kRowBytes, bytes);
    }
    // Bytes that belong to no row.
    void WriteRubbish() {
      const std::vector<std::byte> bytes(rows_.size() * FakeTable::kRowBytes,
                                         std::byte{0xBB});
      Sink()->Write(0, bytes);
    }
    void End(absl::Status status) {
      std::shared_ptr<RowSink> sink;
      StatusDone done;
      {
        MutexLock lock(&mutex_);
        ENGRAM_CHECK(done_ != nullptr);
        done = std::exchange(done_, nullptr);
        sink = std::move(sink_);
      }
      sink.reset();
      done(std::move(status));
    }
    void Answer() {
      Write(0, rows_.size());
      End(absl::OkStatus());
    }

   private:
    friend class ScriptedServer;
    std::shared_ptr<RowSink> Sink() {
      MutexLock lock(&mutex_);
      return sink_;
    }

    std::vector<std::pair<LayerId, RowId>> rows_;
    mutable Mutex mutex_;
    bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
    std::shared_ptr<RowSink> sink_ ABSL_GUARDED_BY(mutex_);
    StatusDone done_ ABSL_GUARDED_BY(mutex_);
  };
  using CallPtr = std::shared_ptr<Call>;

  ~ScriptedServer() override { CancelRest(); }

  // Runs in each Gather, on the thread that calls it.
  std::function<void()> on_gather;

  // The call of this number, from 0; waits for it.
  CallPtr Await(size_t number) {
    const absl::Time give_up = absl::Now() + absl::Seconds(60);
    MutexLock lock(&mutex_);
    while (calls_.size() <= number) {
      ENGRAM_CHECK(changed_.WaitUntil(&mutex_, give_up));
    }
    return calls_[number];
  }
  size_t calls() const {
    MutexLock lock(&mutex_);
    return calls_.size();
  }
  // Ends all that have not ended.
  void CancelRest() {
    std::vector<CallPtr> calls;
    {
      MutexLock lock(&mutex_);
      calls = calls_;
    }
    for (const CallPtr& call : calls) {
      if (call->Sink() != nullptr) call->End(absl::CancelledError("cancelled"));
    }
  }

  std::shared_ptr<TransportCall> Gather(const GatherRequest& request,
                                        std::shared_ptr<RowSink> sink,
                                        StatusDone done) override {
    auto call = std::make_shared<Call>();
    for (const RowRun& run : request.runs) {
      for (const RowId row : run.row_ids)
        call->rows_.push_back({run.layer, row});
    }
    {
      MutexLock lock(&call->mutex_);
      call->sink_ = std::move(sink);
      call->done_ = std::move(done);
    }
    {
      MutexLock lock(&mutex_);
      calls_.push_back(call);
      changed_.NotifyAll();
    }
    if (on_gather) on_gather();
    return call;
  }

  std::shared_ptr<TransportCall> GetTable(absl::Time, TableDone) override {
    ENGRAM_CHECK(false);
  }
  std::shared_ptr<TransportCall> WatchPartitions(WatchEvent,
                                                 StatusDone) override {
    ENGRAM_CHECK(false);
  }
  void WarmUp() override {}

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<CallPtr> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_RPC_SCRIPTED_SERVER_H_
