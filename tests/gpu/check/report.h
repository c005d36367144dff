#ifndef ENGRAM_TESTS_GPU_CHECK_REPORT_H_
#define ENGRAM_TESTS_GPU_CHECK_REPORT_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "tests/gpu/check/statistics.h"

namespace engram::gpu_check {

enum class Verdict { kOk, kFailed, kSkipped };

// What one check came to.
struct CheckResult {
  std::string name;
  Verdict verdict = Verdict::kFailed;
  std::string detail;  // what was compared, or the reason
  double seconds = 0;
};

// One figure, measured in this run.
struct Figure {
  enum class Goal { kNone, kAtLeast, kAtMost };

  std::string name;
  Summary time_us;  // of one launch, over all samples
  size_t launches_a_sample = 1;
  double useful = 0;    // bytes or operations of one launch
  std::string unit;     // of `useful`: "B" or "FLOP"
  std::string ceiling;  // name of what it is compared with
  double ratio = 0;     // to the ceiling, see Report::AddRate, AddFloor
  Goal goal = Goal::kNone;
  double goal_ratio = 0;
  std::string note;

  double RatePerSecond() const;
  // "ok", "short", or "" without a goal.
  std::string Judgement() const;
};

// All that one run found out. Nothing is in it that was not measured.
//
// Thread safety: all methods may be called concurrently, so that a watchdog
// can write what there is.
class Report {
 public:
  // Figures mean nothing: goals are left out, and the table says so.
  void SetRehearsal();
  // Facts about machine and build, by name.
  void AddFact(absl::string_view name, absl::string_view value);
  void AddCheck(CheckResult result);
  // A rate that others are compared with, per second, and how it was measured.
  void AddCeiling(absl::string_view name, double rate, absl::string_view unit,
                  absl::string_view how);
  // ratio = rate / ceiling_rate; the goal, if any, is a least ratio.
  void AddRate(Figure figure, double ceiling_rate,
               std::optional<double> least_ratio);
  // ratio = time / floor; the goal, if any, is a greatest ratio.
  void AddFloor(Figure figure, double floor_us,
                std::optional<double> greatest_ratio);
  void AddNote(absl::string_view note);

  size_t Count(Verdict verdict) const;
  size_t ShortFigures() const;

  std::string ToJson() const;
  // Checks, ceilings, figures and notes, for people.
  std::string ToTable() const;

 private:
  struct Ceiling {
    std::string name;
    double rate = 0;
    std::string unit;
    std::string how;
  };

  mutable Mutex mutex_;
  std::map<std::string, std::string> facts_ ABSL_GUARDED_BY(mutex_);
  std::vector<CheckResult> checks_ ABSL_GUARDED_BY(mutex_);
  std::vector<Ceiling> ceilings_ ABSL_GUARDED_BY(mutex_);
  std::vector<Figure> figures_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> notes_ ABSL_GUARDED_BY(mutex_);
  bool rehearsal_ ABSL_GUARDED_BY(mutex_) = false;
};

// "4.31 TB/s", "812 GFLOP/s", "57.1 GB/s".
std::string FormatRate(double per_second, absl::string_view unit);
// "12.3 us", "1.24 ms".
std::string FormatMicroseconds(double us);

}  // namespace engram::gpu_check

#endif  // ENGRAM_TESTS_GPU_CHECK_REPORT_H_
