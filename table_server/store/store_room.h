#ifndef ENGRAM_TABLE_SERVER_STORE_STORE_ROOM_H_
#define ENGRAM_TABLE_SERVER_STORE_STORE_ROOM_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace engram {

// What a store takes on the disk, with what is being written, against its
// limit. Thread safety: all methods may be called concurrently, but for
// SetOthers.
class StoreRoom {
 public:
  explicit StoreRoom(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  // What other versions take at this moment. REQUIRES: nobody else uses this.
  void SetOthers(uint64_t bytes) { other_bytes_ = bytes; }

  // RESOURCE_EXHAUSTED: there would be more than the limit.
  absl::Status Take(uint64_t bytes, const std::string& what) {
    const uint64_t limit = max_bytes_ > 0 ? max_bytes_ : UINT64_MAX;
    // Not even for a moment more than there may be: another that fits must not
    // be refused.
    uint64_t before = used_.load();
    while (before + bytes + other_bytes_ <= limit) {
      if (used_.compare_exchange_weak(before, before + bytes)) {
        return absl::OkStatus();
      }
    }
    return absl::ResourceExhaustedError(absl::StrCat(
        what, " takes up to ", bytes, " bytes: with ", before,
        " of this table and ", other_bytes_, " of others there would be ",
        before + bytes + other_bytes_, ", the limit is ", limit));
  }
  void Give(uint64_t bytes) { used_.fetch_sub(bytes); }
  // Of what is there whatever the limit.
  void Add(uint64_t bytes) { used_.fetch_add(bytes); }

  uint64_t used() const { return used_.load(); }
  uint64_t other_bytes() const { return other_bytes_; }

 private:
  const uint64_t max_bytes_;  // 0: no limit
  uint64_t other_bytes_ = 0;
  std::atomic<uint64_t> used_{0};
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_STORE_ROOM_H_
