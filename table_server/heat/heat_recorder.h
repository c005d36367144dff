#ifndef ENGRAM_TABLE_SERVER_HEAT_HEAT_RECORDER_H_
#define ENGRAM_TABLE_SERVER_HEAT_HEAT_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/base/mutex.h"
#include "table_server/heat/heat_recording.h"

namespace engram {

// Where gathers say which rows they copy. While nothing is recorded that costs
// one load.
//
// Thread safety: all methods may be called concurrently.
class HeatRecorder {
 public:
  void Record(size_t layer_index, absl::Span<const RowId> row_ids) {
    if (recording_.load(std::memory_order_relaxed)) Add(layer_index, row_ids);
  }

  // From now on rows are counted in `recording`. False: another one is under
  // way.
  [[nodiscard]] bool Start(std::shared_ptr<HeatRecording> recording);
  // Closes `recording` and drops it, if it is the one under way.
  void Stop(const HeatRecording* recording);

  // Null: none is under way.
  std::shared_ptr<HeatRecording> current() const;

 private:
  void Add(size_t layer_index, absl::Span<const RowId> row_ids);

  std::atomic<bool> recording_{false};  // for a quick look
  mutable Mutex mutex_;
  std::shared_ptr<HeatRecording> current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_HEAT_HEAT_RECORDER_H_
