#ifndef ENGRAM_ENGRAM_CLIENT_CTL_PROGRESS_LINE_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_PROGRESS_LINE_H_

#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/time/time.h"

namespace engram::ctl {

// How far something is, on stderr: a line that is drawn anew on a terminal,
// else a line every few seconds.
// Not thread safe.
class ProgressLine {
 public:
  ~ProgressLine() { Wipe(); }

  void Show(const std::string& text, absl::Time now) {
    if (terminal_) {
      std::fprintf(stderr, "\r\x1b[K%s", text.c_str());
    } else if (now >= next_) {
      next_ = now + kLineInterval;
      std::fprintf(stderr, "%s\n", text.c_str());
    }
  }

  void Wipe() {
    if (terminal_) std::fputs("\r\x1b[K", stderr);
  }

 private:
  static constexpr absl::Duration kLineInterval = absl::Seconds(5);
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_PROGRESS_LINE_H_
