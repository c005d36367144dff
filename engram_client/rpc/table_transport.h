#ifndef ENGRAM_ENGRAM_CLIENT_RPC_TABLE_TRANSPORT_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_TABLE_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/wire/gather_request.h"
#include "engram/v1/table.pb.h"

namespace engram {

// A call in flight. May be dropped at any time, which does not cancel it.
// Thread safety: all methods may be called concurrently.
class TransportCall {
 public:
  virtual ~TransportCall() = default;
  // The call ends soon, with CANCELLED unless it has ended already.
  virtual void Cancel() = 0;
};

// Takes the packed rows of one gather, in pieces of any size and in any order.
// Not called once the call's `done` has been.
//
// Thread safety: Write may be called concurrently; no byte is written twice.
class RowSink {
 public:
  virtual ~RowSink() = default;
  // `bytes` are those that begin at `offset_bytes` in the rows, which stand one
  // after another in the order asked.
  virtual void Write(uint64_t offset_bytes,
                     absl::Span<const std::byte> bytes) = 0;
};

// Calls to one table server. The seam for doubles and decorators.
//
// Every `done` is called exactly once, on another thread or after the method
// has returned, never inside it, and nothing of the call happens after it.
// Destroying a transport cancels its calls and waits until all `done`s have
// returned; it must not happen on a thread of the transport.
//
// Thread safety: all methods may be called concurrently.
class TableTransport {
 public:
  using RowRun = engram::RowRun;
  struct GatherRequest {
    absl::string_view version;      // read during the call of Gather only
    absl::Span<const RowRun> runs;  // read during the call of Gather only
    uint64_t reply_bytes = 0;       // of all rows; another size is DATA_LOSS
    // Of the whole gather that this is a part of: a part of a large one must
    // not go before small ones. 0: it is a gather of its own.
    uint64_t gather_bytes = 0;
    bool want_crc32c = false;
    absl::Time deadline;
  };
  using StatusDone = absl::AnyInvocable<void(absl::Status)>;
  using TableDone =
      absl::AnyInvocable<void(absl::StatusOr<v1::GetTableResponse>)>;
  using WatchEvent =
      std::function<void(const v1::WatchPartitionsResponse& message)>;

  virtual ~TableTransport() = default;

  virtual std::shared_ptr<TransportCall> GetTable(absl::Time deadline,
                                                  TableDone done) = 0;

  // `on_message` is called for each message, one at a time.
  virtual std::shared_ptr<TransportCall> WatchPartitions(WatchEvent on_message,
                                                         StatusDone done) = 0;

  // Connects what gathers use, so that the first of them need not. Never waits;
  // tells no errors, the gathers will.
  virtual void WarmUp() = 0;

  // One gather. On OK, `sink` has had exactly reply_bytes, and version, size
  // and (where asked for) checksum of the reply were right: DATA_LOSS where
  // they were not. On an error it may have had some bytes. Errors carry the
  // reasons of engram/v1/errors.proto. The deadline is also sent to the server.
  // `sink` is kept until `done`.
  virtual std::shared_ptr<TransportCall> Gather(const GatherRequest& request,
                                                std::shared_ptr<RowSink> sink,
                                                StatusDone done) = 0;
};

using TransportFactory =
    std::function<std::unique_ptr<TableTransport>(const std::string& address)>;

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_TABLE_TRANSPORT_H_
