#include "table_server/heat/heat_recorder.h"

#include <utility>

namespace engram {

bool HeatRecorder::Start(std::shared_ptr<HeatRecording> recording) {
  MutexLock lock(&mutex_);
  if (current_ != nullptr) return false;
  current_ = std::move(recording);
  recording_.store(true, std::memory_order_relaxed);
  return true;
}

void HeatRecorder::Stop(const HeatRecording* recording) {
  std::shared_ptr<HeatRecording> stopped;  // goes when the lock is gone
  {
    MutexLock lock(&mutex_);
    if (recording == nullptr || current_.get() != recording) return;
    recording_.store(false, std::memory_order_relaxed);
    stopped = std::move(current_);
  }
  stopped->Close();
}

std::shared_ptr<HeatRecording> HeatRecorder::current() const {
  MutexLock lock(&mutex_);
  return current_;
}

// Whoever adds keeps the recording for as long, so Stop waits for nobody.
void HeatRecorder::Add(size_t layer_index, absl::Span<const RowId> row_ids) {
  const std::shared_ptr<HeatRecording> recording = current();
  if (recording != nullptr) recording->Add(layer_index, row_ids);
}

}  // namespace engram
