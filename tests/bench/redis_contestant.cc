// Redis by a client of our own: MGET of binary keys, pipelined; replies are
// copied once, from the receive buffer to the rows.

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "tests/bench/pipelined.h"

namespace engram::bench {
namespace {

constexpr size_t kConnections = 2;
constexpr size_t kKeyBytes = 8;
constexpr uint32_t kSetsPerWrite = 256;

void AppendBulk(std::string& request, const void* data, size_t size_bytes) {
  absl::StrAppend(&request, "$", size_bytes, "\r\n");
  request.append(static_cast<const char*>(data), size_bytes);
  request.append("\r\n");
}

void AppendKey(std::string& request, uint32_t index) {
  const uint64_t key = index;
  static_assert(sizeof(key) == kKeyBytes);
  request.append("$8\r\n");
  request.append(reinterpret_cast<const char*>(&key), sizeof(key));
  request.append("\r\n");
}

class RedisProtocol final : public RowProtocol {
 public:
  explicit RedisProtocol(Socket& socket) : reader_(socket) {}

  void AppendRequest(const Batch& batch, std::string& request) override {
    absl::StrAppend(&request, "*", batch.indices.size() + 1,
                    "\r\n$4\r\nMGET\r\n");
    for (const uint32_t index : batch.indices) AppendKey(request, index);
  }

  absl::Status ReadReply(const Batch& batch,
                         absl::Span<std::byte> out) override {
    const size_t rows = batch.indices.size();
    ENGRAM_ASSIGN_OR_RETURN(const std::string line, reader_.Line());
    if (line != absl::StrCat("*", rows)) {
      return absl::DataLossError(absl::StrCat("Redis answered ", line));
    }
    const size_t row_bytes = out.size() / rows;
    const std::string head = absl::StrCat("$", row_bytes, "\r\n");
    for (size_t i = 0; i < rows; ++i) {
      const size_t size = head.size() + row_bytes + 2;
      ENGRAM_ASSIGN_OR_RETURN(const char* text, reader_.Peek(size));
      if (std::memcmp(text, head.data(), head.size()) != 0) {
        return absl::DataLossError("Redis lacks a row");
      }
      std::memcpy(out.data() + i * row_bytes, text + head.size(), row_bytes);
      reader_.Consume(size);
    }
    return absl::OkStatus();
  }

 private:
  BufferedReader reader_;
};

// Few enough sets at a time that their replies wait in the socket.
absl::Status Load(Socket& socket, const RowTable& table) {
  BufferedReader reader(socket);
  std::string request;
  for (uint32_t next = 0; next < table.row_count();) {
    request.clear();
    const uint32_t first = next;
    for (; next < table.row_count() && next - first < kSetsPerWrite; ++next) {
      request.append("*3\r\n$3\r\nSET\r\n");
      AppendKey(request, next);
      AppendBulk(request, table.row(next), table.row_bytes());
    }
    ENGRAM_RETURN_IF_ERROR(socket.WriteFull(
        {reinterpret_cast<const std::byte*>(request.data()), request.size()}));
    for (uint32_t i = first; i < next; ++i) {
      ENGRAM_ASSIGN_OR_RETURN(const std::string line, reader.Line());
      if (line != "+OK") {
        return absl::InternalError(absl::StrCat("Redis refused a row: ", line));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<GatherContestant> MakeRedis(const ContestantOptions& options) {
  return MakePipelined({.address = options.addresses[0],
                        .connections = kConnections,
                        .make_protocol =
                            [](Socket& socket) {
                              return std::make_unique<RedisProtocol>(socket);
                            },
                        .load = Load});
}

}  // namespace engram::bench
