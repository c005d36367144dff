// memcached by a client of our own: the text protocol's multi-get, pipelined;
// replies are copied once, from the receive buffer to the rows.

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "tests/bench/pipelined.h"

namespace engram::bench {
namespace {

constexpr size_t kConnections = 2;
constexpr size_t kKeyBytes = 8;  // hex digits: the protocol is text
constexpr uint32_t kSetsPerWrite = 1024;

void WriteKey(uint32_t index, char* out) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (size_t i = 0; i < kKeyBytes; ++i) {
    out[i] = kDigits[(index >> (28 - 4 * i)) & 15];
  }
}

class MemcachedProtocol final : public RowProtocol {
 public:
  explicit MemcachedProtocol(Socket& socket) : reader_(socket) {}

  void AppendRequest(const Batch& batch, std::string& request) override {
    size_t at = request.size();
    request.append("get");
    at += 3;
    request.resize(at + batch.indices.size() * (1 + kKeyBytes), ' ');
    for (const uint32_t index : batch.indices) {
      WriteKey(index, &request[at + 1]);
      at += 1 + kKeyBytes;
    }
    request.append("\r\n");
  }

  absl::Status ReadReply(const Batch& batch,
                         absl::Span<std::byte> out) override {
    const size_t rows = batch.indices.size();
    const size_t row_bytes = out.size() / rows;
    std::string head = absl::StrCat("VALUE ", std::string(kKeyBytes, '0'),
                                    " 0 ", row_bytes, "\r\n");
    for (size_t i = 0; i < rows; ++i) {
      WriteKey(batch.indices[i], &head[6]);
      const size_t size = head.size() + row_bytes + 2;
      ENGRAM_ASSIGN_OR_RETURN(const char* text, reader_.Peek(size));
      if (std::memcmp(text, head.data(), head.size()) != 0) {
        return absl::DataLossError(absl::StrCat(
            "memcached lacks row ", batch.indices[i], " or sent another"));
      }
      std::memcpy(out.data() + i * row_bytes, text + head.size(), row_bytes);
      reader_.Consume(size);
    }
    ENGRAM_ASSIGN_OR_RETURN(const std::string line, reader_.Line());
    return line == "END"
               ? absl::OkStatus()
               : absl::DataLossError(absl::StrCat("memcached answered ", line));
  }

 private:
  BufferedReader reader_;
};

absl::Status Load(Socket& socket, const RowTable& table) {
  std::string request;
  char key[kKeyBytes];
  for (uint32_t next = 0; next < table.row_count();) {
    request.clear();
    const uint32_t first = next;
    for (; next < table.row_count() && next - first < kSetsPerWrite; ++next) {
      WriteKey(next, key);
      absl::StrAppend(&request, "set ", absl::string_view(key, kKeyBytes),
                      " 0 0 ", table.row_bytes(), " noreply\r\n");
      request.append(reinterpret_cast<const char*>(table.row(next)),
                     table.row_bytes());
      request.append("\r\n");
    }
    ENGRAM_RETURN_IF_ERROR(socket.WriteFull(
        {reinterpret_cast<const std::byte*>(request.data()), request.size()}));
  }
  // Answered once everything before it was done.
  const absl::string_view version = "version\r\n";
  ENGRAM_RETURN_IF_ERROR(socket.WriteFull(
      {reinterpret_cast<const std::byte*>(version.data()), version.size()}));
  BufferedReader reader(socket);
  ENGRAM_ASSIGN_OR_RETURN(const std::string line, reader.Line());
  return absl::string_view(line).substr(0, 7) == "VERSION"
             ? absl::OkStatus()
             : absl::InternalError(
                   absl::StrCat("memcached refused a row: ", line));
}

}  // namespace

std::unique_ptr<GatherContestant> MakeMemcached(
    const ContestantOptions& options) {
  return MakePipelined({.address = options.addresses[0],
                        .connections = kConnections,
                        .make_protocol =
                            [](Socket& socket) {
                              return std::make_unique<MemcachedProtocol>(
                                  socket);
                            },
                        .load = Load});
}

}  // namespace engram::bench
