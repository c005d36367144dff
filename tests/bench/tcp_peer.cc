#include "tests/bench/tcp_peer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/page_buffer.h"
#include "core/base/status_macros.h"
#include "tests/bench/tcp_wire.h"

namespace engram::bench {
namespace {

constexpr size_t kMaxClients = 64;

template <typename T>
absl::Span<std::byte> BytesOf(absl::Span<T> values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          values.size() * sizeof(T)};
}

// What one connection needs, kept from request to request.
class Session {
 public:
  Session(const RowTable& table, size_t piece_rows, Socket& socket)
      : table_(table), piece_rows_(piece_rows), socket_(socket) {}

  absl::Status ServeOne() {
    uint32_t header = 0;
    ENGRAM_RETURN_IF_ERROR(
        socket_.ReadFull(BytesOf(absl::MakeSpan(&header, 1))));
    const uint32_t rows = header & ~kBytesOnly;
    if (rows > kMaxTcpRows) {
      return absl::InvalidArgumentError(absl::StrCat(rows, " rows"));
    }
    indices_.resize(rows);
    ENGRAM_RETURN_IF_ERROR(socket_.ReadFull(BytesOf(absl::MakeSpan(indices_))));
    const bool in_range =
        std::all_of(indices_.begin(), indices_.end(),
                    [&](uint32_t index) { return index < table_.row_count(); });
    if (!in_range) return absl::OutOfRangeError("no such row");
    return Answer((header & kBytesOnly) == 0);
  }

 private:
  absl::Status Answer(bool gather) {
    const size_t piece_rows = piece_rows_ == 0 ? indices_.size() : piece_rows_;
    ENGRAM_RETURN_IF_ERROR(Reserve(piece_rows * table_.row_bytes()));
    for (size_t at = 0; at < indices_.size(); at += piece_rows) {
      const auto piece = absl::MakeConstSpan(indices_).subspan(at, piece_rows);
      const absl::Span<std::byte> bytes =
          buffer_.bytes().subspan(0, piece.size() * table_.row_bytes());
      if (gather) table_.Gather(piece, bytes);
      ENGRAM_RETURN_IF_ERROR(socket_.WriteFull(bytes));
    }
    return absl::OkStatus();
  }

  absl::Status Reserve(size_t size_bytes) {
    if (buffer_.bytes().size() >= size_bytes) return absl::OkStatus();
    ENGRAM_ASSIGN_OR_RETURN(buffer_, PageBuffer::Allocate(size_bytes));
    return absl::OkStatus();
  }

  const RowTable& table_;
  const size_t piece_rows_;
  Socket& socket_;
  std::vector<uint32_t> indices_;
  PageBuffer buffer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TcpPeer>> TcpPeer::Start(const RowTable& table,
                                                        Options options) {
  ENGRAM_ASSIGN_OR_RETURN(Listener listener, Listener::Bind());
  return std::unique_ptr<TcpPeer>(
      new TcpPeer(table, options, std::move(listener)));
}

TcpPeer::TcpPeer(const RowTable& table, Options options, Listener listener)
    : table_(table), options_(options), listener_(std::move(listener)) {
  acceptor_ = std::thread([this] { AcceptClients(); });
}

TcpPeer::~TcpPeer() {
  listener_.Shutdown();
  std::vector<std::unique_ptr<Client>> clients;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    clients.swap(clients_);
  }
  acceptor_.join();
  for (const std::unique_ptr<Client>& client : clients) {
    client->socket.Shutdown();
    client->thread.join();
  }
}

void TcpPeer::AcceptClients() {
  for (;;) {
    absl::StatusOr<Socket> socket = listener_.Accept();
    if (!socket.ok()) return;
    JoinDone();
    auto client = std::make_unique<Client>();
    client->socket = *std::move(socket);
    MutexLock lock(&mutex_);
    if (stopping_) return;
    if (clients_.size() >= kMaxClients) continue;
    client->thread =
        std::thread([this, client = client.get()] { Serve(*client); });
    clients_.push_back(std::move(client));
  }
}

void TcpPeer::Serve(Client& client) {
  Session session(table_, options_.piece_rows, client.socket);
  while (session.ServeOne().ok()) {
  }
  client.socket.Shutdown();
  MutexLock lock(&mutex_);
  client.done = true;
}

void TcpPeer::JoinDone() {
  std::vector<std::unique_ptr<Client>> done;
  {
    MutexLock lock(&mutex_);
    const auto first_done = std::stable_partition(
        clients_.begin(), clients_.end(),
        [](const std::unique_ptr<Client>& client) { return !client->done; });
    std::move(first_done, clients_.end(), std::back_inserter(done));
    clients_.erase(first_done, clients_.end());
  }
  for (const std::unique_ptr<Client>& client : done) client->thread.join();
}

}  // namespace engram::bench
