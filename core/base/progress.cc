#include "core/base/progress.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace engram {
namespace {

constexpr absl::Duration kBarInterval = absl::Milliseconds(200);
constexpr absl::Duration kLineInterval = absl::Seconds(5);
constexpr size_t kBarCells = 24;
constexpr absl::string_view kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
// Back to the first column, and wipe the line.
constexpr char kLineStart[] = "\r\x1b[K";

absl::Duration IntervalOf(ProgressStyle style) {
  return style == ProgressStyle::kBar ? kBarInterval : kLineInterval;
}

std::string Bar(uint64_t done, uint64_t total) {
  const double part =
      total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
  const size_t cells = std::min(
      kBarCells, static_cast<size_t>(part * static_cast<double>(kBarCells)));
  return absl::StrCat("[", std::string(cells, '#'),
                      std::string(kBarCells - cells, '-'), "]");
}

}  // namespace

std::string ProgressText(uint64_t done_bytes, uint64_t total_bytes,
                         absl::Duration elapsed) {
  const double part = total_bytes > 0 ? static_cast<double>(done_bytes) /
                                            static_cast<double>(total_bytes)
                                      : 1;
  std::string text = absl::StrCat(
      FormatBytes(done_bytes), " of ", FormatBytes(total_bytes), " (",
      static_cast<int>(part * 100), " %), ", FormatRate(done_bytes, elapsed));
  if (part > 0 && part < 1) {
    const absl::Duration left = elapsed * ((1 - part) / part);
    absl::StrAppend(&text, ", ", absl::ToInt64Seconds(left), " s left");
  }
  return text;
}

Progress::Progress(std::string label, std::FILE* out, const Clock& clock)
    : Progress(
          std::move(label), out, clock,
          isatty(fileno(out)) ? ProgressStyle::kBar : ProgressStyle::kLines) {}

Progress::Progress(std::string label, std::FILE* out, const Clock& clock,
                   ProgressStyle style)
    : label_(std::move(label)),
      out_(out),
      clock_(clock),
      style_(style),
      start_(clock.Now()),
      next_(start_ + IntervalOf(style)) {}

Progress::~Progress() {
  if (bar_shown_) std::fputs(kLineStart, out_);
}

void Progress::Update(uint64_t done_bytes, uint64_t total_bytes) {
  const absl::Time now = clock_.Now();
  if (now < next_) return;
  next_ = now + IntervalOf(style_);
  const std::string text = ProgressText(done_bytes, total_bytes, now - start_);
  if (style_ == ProgressStyle::kBar) {
    bar_shown_ = true;
    std::fprintf(out_, "%s%s %s %s", kLineStart, label_.c_str(),
                 Bar(done_bytes, total_bytes).c_str(), text.c_str());
  } else {
    std::fprintf(out_, "%s: %s\n", label_.c_str(), text.c_str());
  }
  std::fflush(out_);
}

std::string FormatBytes(uint64_t bytes) {
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.95 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) return absl::StrCat(bytes, " B");
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string FormatRate(uint64_t bytes, absl::Duration elapsed) {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  if (seconds <= 0) return "-";
  return absl::StrFormat("%.0f MB/s",
                         static_cast<double>(bytes) / 1e6 / seconds);
}

}  // namespace engram
