#include "tests/bench/pipelined.h"

#include <atomic>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace engram::bench {
namespace {

constexpr absl::Duration kSocketTimeout = absl::Seconds(20);

struct Outstanding {
  size_t slot;
  const Batch* batch;
  absl::Span<std::byte> out;
};

absl::Span<const std::byte> AsBytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

class Connection {
 public:
  // `ended` is null where the driver reads the replies itself.
  Connection(Socket socket, const PipelinedOptions& options,
             EndedGathers* ended)
      : socket_(std::move(socket)),
        protocol_(options.make_protocol(socket_)),
        ended_(ended) {
    if (ended_ != nullptr) reader_ = std::thread([this] { ReadReplies(); });
  }

  ~Connection() {
    socket_.Shutdown();
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      changed_.NotifyOne();
    }
    if (reader_.joinable()) reader_.join();
  }

  absl::Status Send(const Outstanding& gather) {
    request_.clear();
    protocol_->AppendRequest(*gather.batch, request_);
    {
      MutexLock lock(&mutex_);
      outstanding_.push_back(gather);
      count_.fetch_add(1, std::memory_order_relaxed);
      changed_.NotifyOne();
    }
    return socket_.WriteFull(AsBytes(request_));
  }

  absl::StatusOr<size_t> ReadOne() {
    const std::optional<Outstanding> next = Next();
    ENGRAM_CHECK(next.has_value());
    ENGRAM_RETURN_IF_ERROR(protocol_->ReadReply(*next->batch, next->out));
    count_.fetch_sub(1, std::memory_order_relaxed);
    return next->slot;
  }

  size_t outstanding() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::optional<Outstanding> Next() {
    MutexLock lock(&mutex_);
    while (outstanding_.empty() && !stopping_) changed_.Wait(&mutex_);
    if (stopping_) return std::nullopt;
    const Outstanding next = outstanding_.front();
    outstanding_.pop_front();
    return next;
  }

  void ReadReplies() {
    while (const std::optional<Outstanding> next = Next()) {
      const absl::Status status = protocol_->ReadReply(*next->batch, next->out);
      count_.fetch_sub(1, std::memory_order_relaxed);
      ended_->Push(next->slot, status);
      if (!status.ok()) return;
    }
  }

  Socket socket_;
  const std::unique_ptr<RowProtocol> protocol_;
  EndedGathers* const ended_;
  std::string request_;
  std::atomic<size_t> count_ = 0;  // outstanding, and being read
  Mutex mutex_;
  CondVar changed_;
  std::deque<Outstanding> outstanding_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread reader_;
};

class Pipelined final : public GatherContestant {
 public:
  explicit Pipelined(PipelinedOptions options) : options_(std::move(options)) {}

  absl::Status Connect(const RowTable& table) override {
    if (!options_.load) return absl::OkStatus();
    ENGRAM_ASSIGN_OR_RETURN(Socket socket,
                            Socket::Connect(options_.address, kSocketTimeout));
    return options_.load(socket, table);
  }

  absl::Status Prepare(size_t max_in_flight) override {
    connections_.clear();
    ended_.Clear();
    inline_reads_ = max_in_flight == 1;
    for (size_t i = 0; i < options_.connections; ++i) {
      ENGRAM_ASSIGN_OR_RETURN(
          Socket socket, Socket::Connect(options_.address, kSocketTimeout));
      connections_.push_back(std::make_unique<Connection>(
          std::move(socket), options_, inline_reads_ ? nullptr : &ended_));
    }
    return absl::OkStatus();
  }

  absl::Status Start(size_t slot, const Batch& batch,
                     absl::Span<std::byte> out) override {
    // Turns among equals, so that none gets all the single gathers.
    last_ = (last_ + 1) % connections_.size();
    for (size_t i = 0; i < connections_.size(); ++i) {
      if (connections_[i]->outstanding() < connections_[last_]->outstanding()) {
        last_ = i;
      }
    }
    return connections_[last_]->Send({slot, &batch, out});
  }

  absl::StatusOr<size_t> WaitAny(absl::Time deadline) override {
    return inline_reads_ ? connections_[last_]->ReadOne()
                         : ended_.Pop(deadline);
  }

  bool delivers_rows() const override { return options_.delivers_rows; }

 private:
  const PipelinedOptions options_;
  bool inline_reads_ = true;
  size_t last_ = 0;
  EndedGathers ended_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace

std::unique_ptr<GatherContestant> MakePipelined(PipelinedOptions options) {
  return std::make_unique<Pipelined>(std::move(options));
}

}  // namespace engram::bench
