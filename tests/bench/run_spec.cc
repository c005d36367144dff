#include "tests/bench/run_spec.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/strict_json.h"

namespace engram::bench {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxRows = 1 << 20;
constexpr uint64_t kMaxInFlight = 1024;
constexpr uint64_t kMaxRounds = 1000;
constexpr uint64_t kMaxDurationMs = 600'000;
constexpr uint64_t kMaxPid = uint64_t{1} << 31;

absl::StatusOr<const json*> List(const json& object, const std::string& key) {
  ENGRAM_ASSIGN_OR_RETURN(const json* list, JsonMember(object, key));
  if (!list->is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(key, " is not a list"));
  }
  return list;
}

absl::StatusOr<std::vector<std::string>> Strings(const json& object,
                                                 const std::string& key) {
  ENGRAM_ASSIGN_OR_RETURN(const json* list, List(object, key));
  std::vector<std::string> values;
  for (const json& value : *list) {
    if (!value.is_string()) {
      return absl::InvalidArgumentError(absl::StrCat(key, " has a non-string"));
    }
    values.push_back(value.get<std::string>());
  }
  return values;
}

template <typename T>
absl::StatusOr<std::vector<T>> Numbers(const json& object,
                                       const std::string& key, uint64_t max) {
  ENGRAM_ASSIGN_OR_RETURN(const json* list, List(object, key));
  std::vector<T> values;
  for (const json& value : *list) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > max) {
      return absl::InvalidArgumentError(
          absl::StrCat(key, " has a value that is not within 0 .. ", max));
    }
    values.push_back(static_cast<T>(value.get<uint64_t>()));
  }
  return values;
}

absl::StatusOr<Cell> ParseCell(const json& object) {
  Cell cell;
  ENGRAM_ASSIGN_OR_RETURN(cell.ids, JsonString(object, "ids"));
  ENGRAM_ASSIGN_OR_RETURN(cell.rows, JsonUint(object, "rows", kMaxRows));
  ENGRAM_ASSIGN_OR_RETURN(cell.in_flight,
                          JsonUint(object, "in_flight", kMaxInFlight));
  if (cell.rows == 0 || cell.in_flight == 0) {
    return absl::InvalidArgumentError("rows and in_flight must be above 0");
  }
  return cell;
}

absl::StatusOr<ContestantSpec> ParseContestant(const json& object) {
  ContestantSpec spec;
  ENGRAM_ASSIGN_OR_RETURN(spec.name, JsonString(object, "name"));
  ENGRAM_ASSIGN_OR_RETURN(spec.options.kind, JsonString(object, "kind"));
  ENGRAM_ASSIGN_OR_RETURN(spec.options.addresses, Strings(object, "addresses"));
  ENGRAM_ASSIGN_OR_RETURN(spec.options.scratch_dir,
                          JsonString(object, "scratch_dir"));
  ENGRAM_ASSIGN_OR_RETURN(spec.processes,
                          Numbers<pid_t>(object, "processes", kMaxPid));
  ENGRAM_ASSIGN_OR_RETURN(spec.only_ids, Strings(object, "only_ids"));
  ENGRAM_ASSIGN_OR_RETURN(spec.only_rows,
                          Numbers<size_t>(object, "only_rows", kMaxRows));
  ENGRAM_ASSIGN_OR_RETURN(
      spec.only_in_flight,
      Numbers<size_t>(object, "only_in_flight", kMaxInFlight));
  return spec;
}

template <typename T>
bool Allows(const std::vector<T>& only, const T& value) {
  return only.empty() ||
         std::find(only.begin(), only.end(), value) != only.end();
}

}  // namespace

bool ContestantSpec::TakesPartIn(const Cell& cell) const {
  return Allows(only_ids, cell.ids) && Allows(only_rows, cell.rows) &&
         Allows(only_in_flight, cell.in_flight);
}

absl::StatusOr<RunSpec> ParseRunSpec(absl::string_view text) {
  ENGRAM_ASSIGN_OR_RETURN(const json spec, ParseStrictJson(text));
  if (!spec.is_object()) return absl::InvalidArgumentError("not an object");
  RunSpec run;
  ENGRAM_ASSIGN_OR_RETURN(run.checkpoint_dir, JsonString(spec, "checkpoint"));
  ENGRAM_ASSIGN_OR_RETURN(run.rounds, JsonUint(spec, "rounds", kMaxRounds));
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t duration_ms,
                          JsonUint(spec, "duration_ms", kMaxDurationMs));
  run.duration = absl::Milliseconds(duration_ms);
  ENGRAM_ASSIGN_OR_RETURN(const json* cells, List(spec, "cells"));
  for (const json& cell : *cells) {
    ENGRAM_ASSIGN_OR_RETURN(run.cells.emplace_back(), ParseCell(cell));
  }
  ENGRAM_ASSIGN_OR_RETURN(const json* contestants, List(spec, "contestants"));
  for (const json& contestant : *contestants) {
    ENGRAM_ASSIGN_OR_RETURN(run.contestants.emplace_back(),
                            ParseContestant(contestant));
  }
  return run;
}

}  // namespace engram::bench
