#ifndef ENGRAM_TABLE_SERVER_SERVICE_SERVICE_LIMITS_H_
#define ENGRAM_TABLE_SERVER_SERVICE_SERVICE_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "core/wire/gather_size.h"

namespace engram {

// Everything that a caller could make grow, and its bound.
struct ServiceLimits {
  uint64_t max_rows_per_gather = 65536;
  // Of all calls and streams; more are OVERLOADED.
  uint64_t max_gathers_in_flight = 256;
  uint64_t max_bytes_in_flight = uint64_t{1} << 30;  // requests and replies
  // And never more than a quarter of max_gathers_in_flight.
  uint64_t max_gathers_in_flight_per_stream = 64;
  uint64_t max_streams = 8192;  // a client has some for each connection
  uint64_t max_watchers = 1024;
  uint64_t max_fetches = 4;  // partitions that peers copy at once
  // Recordings of heat: one under way, and those that are still being told.
  uint64_t max_heat_streams = 4;
  // Gathers of no more row bytes than this are of decode size: they go before
  // larger ones.
  uint64_t small_bytes = kSmallGatherBytes;
  // Rows are gathered and sent in pieces of this size, at least one row; this
  // many of them wait for a slow reader, then its gathers pause. A message
  // mostly wakes the client, whose core was idle, and that costs the sender as
  // much as copying 64 KiB; but a piece is to be still in the core's cache when
  // it is sent. Eight with their framing fit a huge page.
  uint64_t piece_bytes = 255 << 10;
  uint64_t max_queued_pieces = 2;
  // So many large gathers of a stream wait for rows that are not in memory,
  // with a piece each; then no other large one gets its turn. Small ones do.
  uint64_t max_waiting_pieces = 16;
  // Memory for pieces that is kept for the next ones.
  uint64_t pooled_reply_bytes = 128 << 20;
  absl::Duration retry_after = absl::Milliseconds(20);  // of OVERLOADED
  // Fetches are sent in pieces of this size, at least one row: short enough
  // that gathers do not wait long for the thread that copies one.
  uint64_t fetch_piece_bytes = 256 << 10;
  // A stream whose caller takes nothing for so long is cancelled.
  absl::Duration stall = absl::Minutes(1);
  absl::Duration retry_fetch_after = absl::Milliseconds(200);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_SERVICE_LIMITS_H_
