#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_TARGET_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/ids.h"
#include "engram_client/ctl/load_schedule.h"

namespace engram::ctl {

// Where an answer first differs from what it should be.
struct LoadMismatch {
  std::string version;  // of the table
  LayerId layer{};
  uint64_t item = 0;  // row id, or number of the step's input
  uint64_t slot = 0;  // row of the layer's rows, or token of the step
  uint64_t byte = 0;  // of the row, or of the token's results
  uint8_t wanted = 0;
  uint8_t got = 0;
  uint64_t wrong = 0;  // rows or tokens of the call that differ
  std::string text;    // all of it, for people
};

// What an ended call was worth.
struct LoadAnswer {
  uint64_t units = 0;  // rows or tokens that it brought
  uint64_t bytes = 0;  // of them
  uint64_t units_checked = 0;
  uint64_t server_calls = 0;  // that it took
  uint64_t wire_bytes = 0;    // of rows
  std::optional<LoadMismatch> mismatch;
  absl::Status cannot_check;  // the reference could not be read
};

// What load is put on. A call goes through one slot: Prepare, Start, then,
// after `done` was called and Start has returned, Finish; then the slot is
// free for the next. Every slot's memory is there from the start.
//
// Thread safety: calls for different slots may come concurrently.
class LoadTarget {
 public:
  using Done = absl::AnyInvocable<void(const absl::Status&)>;

  virtual ~LoadTarget() = default;

  // "rows" or "tokens".
  virtual std::string unit() const = 0;
  // Table version id.
  virtual std::string version() const = 0;
  // What the client counts, by name, since it was made: calls sent again,
  // servers left out.
  virtual std::vector<std::pair<std::string, uint64_t>> client_counts() const {
    return {};
  }

  // Draws the call's content, before its time has come. May be called again
  // for another call instead of Start.
  virtual void Prepare(size_t slot, const LoadCall& call) = 0;
  // Sends it; does not wait for the answer. `done` is called once, on any
  // thread, and does not block.
  virtual void Start(size_t slot, absl::Time deadline, Done done) = 0;
  // Compares what came. `status` is what `done` was told.
  virtual LoadAnswer Finish(size_t slot, const absl::Status& status) = 0;
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_TARGET_H_
