#ifndef ENGRAM_COMPUTE_WORKER_STEP_LAYER_H_
#define ENGRAM_COMPUTE_WORKER_STEP_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "compute/block/row_source.h"
#include "compute/block/rows_buffer.h"
#include "compute/worker/step.h"
#include "compute/worker/stream_reservation.h"
#include "core/base/ids.h"
#include "engram/v1/compute.pb.h"

// Parts of Step, for step.cc and step_chunks.cc only.
namespace engram {

// Streams that wait for their turn, and what has been computed of them.
struct Step::PendingChunk {
  StepChunk chunk;
  uint64_t token_count = 0;
  absl::Time arrived;
  uint64_t tokens_done = 0;
  StreamReservation reserved;
  v1::LayerResult result;
};

// The first three are constant. `row_ids` and `rows` are made by the thread in
// StartFetches, then written by the fetch, and read by runs once rows_ready;
// all else is under the step's mutex.
struct Step::Layer {
  size_t index = 0;  // in the model
  LayerId id{};
  absl::Time rows_deadline;  // not later than the step's
  std::vector<RowId> row_ids;
  RowsBuffer rows;

  std::unique_ptr<RowFetch> fetch;
  absl::Time fetch_started;
  absl::Time rows_arrived;
  bool fetch_over = false;  // its `done` was called
  bool rows_ready = false;
  std::vector<bool> received;  // by token
  uint64_t received_count = 0;
  std::deque<PendingChunk> pending;  // the first is the one being computed
  bool computing = false;  // a run of this layer is queued or going on
  absl::Time queued;
};

}  // namespace engram

#endif  // ENGRAM_COMPUTE_WORKER_STEP_LAYER_H_
