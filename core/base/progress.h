#ifndef ENGRAM_CORE_BASE_PROGRESS_H_
#define ENGRAM_CORE_BASE_PROGRESS_H_

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/time/time.h"
#include "core/base/clock.h"

namespace engram {

enum class ProgressStyle { kBar, kLines };

// How far a long piece of work is: a bar that moves on a terminal, else a line
// every few seconds. Work that ends within the first of those says nothing.
//
// Thread safety: none; one call at a time.
class Progress {
 public:
  // kBar if `out` is a terminal. `clock` and `out` must outlive this.
  Progress(std::string label, std::FILE* out, const Clock& clock);
  Progress(std::string label, std::FILE* out, const Clock& clock,
           ProgressStyle style);
  ~Progress();  // wipes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Update(uint64_t done_bytes, uint64_t total_bytes);
  absl::Duration elapsed() const { return clock_.Now() - start_; }

 private:
  const std::string label_;
  std::FILE* const out_;
  const Clock& clock_;
  const ProgressStyle style_;
  const absl::Time start_;
  absl::Time next_;
  bool bar_shown_ = false;
};

// "12.3 GB of 45.6 GB (27 %), 812 MB/s, 41 s left"
std::string ProgressText(uint64_t done_bytes, uint64_t total_bytes,
                         absl::Duration elapsed);

// In the unit that leaves three digits or fewer before the point, powers of
// 1000: "264 B", "17.3 MB", "202.8 GB".
std::string FormatBytes(uint64_t bytes);

// "812 MB/s"; "-" before any time has passed.
std::string FormatRate(uint64_t bytes, absl::Duration elapsed);

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_PROGRESS_H_
