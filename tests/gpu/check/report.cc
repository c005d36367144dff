#include "tests/gpu/check/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace engram::gpu_check {
namespace {

using nlohmann::json;

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kFailed:
      return "FAILED";
    case Verdict::kSkipped:
      return "skipped";
  }
  return "";
}

std::string GoalText(const Figure& figure) {
  switch (figure.goal) {
    case Figure::Goal::kNone:
      return "";
    case Figure::Goal::kAtLeast:
      return absl::StrFormat(">= %.2f", figure.goal_ratio);
    case Figure::Goal::kAtMost:
      return absl::StrFormat("<= %.2f", figure.goal_ratio);
  }
  return "";
}

json FigureJson(const Figure& figure) {
  json result = {{"name", figure.name},
                 {"median_us", figure.time_us.median},
                 {"p10_us", figure.time_us.p10},
                 {"p90_us", figure.time_us.p90},
                 {"least_us", figure.time_us.least},
                 {"samples", figure.time_us.samples},
                 {"launches_a_sample", figure.launches_a_sample},
                 {"useful", figure.useful},
                 {"unit", figure.unit},
                 {"rate_per_s", figure.RatePerSecond()},
                 {"ceiling", figure.ceiling},
                 {"ratio", figure.ratio},
                 {"goal", GoalText(figure)},
                 {"judgement", figure.Judgement()}};
  if (!figure.note.empty()) result["note"] = figure.note;
  return result;
}

}  // namespace

double Figure::RatePerSecond() const {
  return time_us.median > 0 ? useful / (time_us.median * 1e-6) : 0;
}

std::string Figure::Judgement() const {
  if (goal == Goal::kNone) return "";
  const bool reached =
      goal == Goal::kAtLeast ? ratio >= goal_ratio : ratio <= goal_ratio;
  return reached ? "ok" : "short";
}

void Report::SetRehearsal() {
  MutexLock lock(&mutex_);
  rehearsal_ = true;
  notes_.push_back("a rehearsal: the figures mean nothing");
}

void Report::AddFact(absl::string_view name, absl::string_view value) {
  MutexLock lock(&mutex_);
  facts_[std::string(name)] = std::string(value);
}

void Report::AddCheck(CheckResult result) {
  MutexLock lock(&mutex_);
  checks_.push_back(std::move(result));
}

void Report::AddCeiling(absl::string_view name, double rate,
                        absl::string_view unit, absl::string_view how) {
  MutexLock lock(&mutex_);
  ceilings_.push_back(
      {std::string(name), rate, std::string(unit), std::string(how)});
}

void Report::AddRate(Figure figure, double ceiling_rate,
                     std::optional<double> least_ratio) {
  figure.ratio = ceiling_rate > 0 ? figure.RatePerSecond() / ceiling_rate : 0;
  MutexLock lock(&mutex_);
  if (least_ratio && !rehearsal_) {
    figure.goal = Figure::Goal::kAtLeast;
    figure.goal_ratio = *least_ratio;
  }
  figures_.push_back(std::move(figure));
}

void Report::AddFloor(Figure figure, double floor_us,
                      std::optional<double> greatest_ratio) {
  figure.ratio = floor_us > 0 ? figure.time_us.median / floor_us : 0;
  MutexLock lock(&mutex_);
  if (greatest_ratio && !rehearsal_) {
    figure.goal = Figure::Goal::kAtMost;
    figure.goal_ratio = *greatest_ratio;
  }
  figures_.push_back(std::move(figure));
}

void Report::AddNote(absl::string_view note) {
  MutexLock lock(&mutex_);
  notes_.emplace_back(note);
}

size_t Report::Count(Verdict verdict) const {
  MutexLock lock(&mutex_);
  return std::count_if(
      checks_.begin(), checks_.end(),
      [&](const CheckResult& check) { return check.verdict == verdict; });
}

size_t Report::ShortFigures() const {
  MutexLock lock(&mutex_);
  return std::count_if(
      figures_.begin(), figures_.end(),
      [](const Figure& figure) { return figure.Judgement() == "short"; });
}

std::string Report::ToJson() const {
  MutexLock lock(&mutex_);
  json result = {{"facts", facts_}, {"notes", notes_}};
  result["checks"] = json::array();
  for (const CheckResult& check : checks_) {
    result["checks"].push_back({{"name", check.name},
                                {"result", VerdictName(check.verdict)},
                                {"detail", check.detail},
                                {"seconds", check.seconds}});
  }
  result["ceilings"] = json::array();
  for (const Ceiling& ceiling : ceilings_) {
    result["ceilings"].push_back({{"name", ceiling.name},
                                  {"rate_per_s", ceiling.rate},
                                  {"unit", ceiling.unit},
                                  {"how", ceiling.how}});
  }
  result["figures"] = json::array();
  for (const Figure& figure : figures_) {
    result["figures"].push_back(FigureJson(figure));
  }
  // A device's name in another encoding must not lose the numbers.
  return result.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string Report::ToTable() const {
  MutexLock lock(&mutex_);
  std::string text;
  absl::StrAppendFormat(&text, "%-20s %-8s %6s  %s\n", "check", "result", "s",
                        "what");
  for (const CheckResult& check : checks_) {
    absl::StrAppendFormat(&text, "%-20s %-8s %6.1f  %s\n", check.name,
                          VerdictName(check.verdict), check.seconds,
                          check.detail);
  }
  if (!ceilings_.empty()) text += "\nceilings, measured in this run\n";
  for (const Ceiling& ceiling : ceilings_) {
    absl::StrAppendFormat(&text, "%-34s %14s  %s\n", ceiling.name,
                          FormatRate(ceiling.rate, ceiling.unit), ceiling.how);
  }
  if (!figures_.empty()) {
    absl::StrAppendFormat(&text, "\n%-38s %9s %14s  %5s %-22s %-8s\n", "figure",
                          "time", "rate", "ratio", "to", "goal");
  }
  for (const Figure& figure : figures_) {
    absl::StrAppendFormat(
        &text, "%-38s %9s %14s  %5.2f %-22s %-8s %s\n", figure.name,
        FormatMicroseconds(figure.time_us.median),
        figure.useful > 0 ? FormatRate(figure.RatePerSecond(), figure.unit)
                          : "",
        figure.ratio, figure.ceiling, GoalText(figure), figure.Judgement());
  }
  for (const std::string& note : notes_) {
    absl::StrAppend(&text, "note: ", note, "\n");
  }
  return text;
}

std::string FormatRate(double per_second, absl::string_view unit) {
  const char* prefix = "";
  for (const char* larger : {"k", "M", "G", "T"}) {
    if (per_second < 1000) break;
    per_second /= 1000;
    prefix = larger;
  }
  return absl::StrFormat("%.*f %s%s/s", per_second < 10 ? 2 : 1, per_second,
                         prefix, unit);
}

std::string FormatMicroseconds(double us) {
  if (us < 1000) return absl::StrFormat("%.*f us", us < 100 ? 1 : 0, us);
  return absl::StrFormat("%.*f ms", us < 100'000 ? 2 : 0, us / 1000);
}

}  // namespace engram::gpu_check
