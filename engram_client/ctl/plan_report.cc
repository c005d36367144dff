// The JSON of `engramctl plan`, format "engram-plan/1". Bytes are of packed
// rows; null where there is nothing to say.
//
//   version           of the table
//   table             partitions and bytes of one copy
//   replicas          now, then
//   members[]         name; change: joins, leaves or stays
//     now, then         null: no member; capacity, partitions and bytes owned,
//                       of_share (partitions by what its capacity gives it)
//     to_receive, to_give_up, peak_bytes (while it moves)
//   moved             partitions and bytes, all members
//   least             what any way to the same sums moves at least
//   moved_by_least    of bytes
//   fullest           now, then: name and of_share
//   notes[]

#include "engram_client/ctl/plan_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/progress.h"
#include "engram_client/ctl/format.h"

namespace engram::ctl {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

std::string ChangeOf(const MemberMoves& member) {
  if (!member.now.is_member) return "joins";
  return member.then.is_member ? "stays" : "leaves";
}

std::string FromTo(uint64_t now, uint64_t then) {
  if (now == then) return absl::StrCat(now);
  return absl::StrCat(now, " -> ", then);
}

std::string SumAsText(const PartitionSum& sum) {
  return absl::StrCat(WithCommas(sum.partitions),
                      sum.partitions == 1 ? " partition, " : " partitions, ",
                      FormatBytes(sum.bytes));
}

double MovedByLeast(const MovePlan& plan) {
  return static_cast<double>(plan.moved.bytes) /
         static_cast<double>(plan.least.bytes);
}

std::string HeadAsText(const PlanReport& report) {
  const MovePlan& plan = report.plan;
  const auto count = [&](MemberEnd MemberMoves::*end) {
    return std::count_if(
        plan.members.begin(), plan.members.end(),
        [end](const MemberMoves& member) { return (member.*end).is_member; });
  };
  return absl::StrCat(
      "table ", ShortVersion(report.version),
      ", one copy: ", SumAsText(plan.table), "\nmembers ",
      FromTo(count(&MemberMoves::now), count(&MemberMoves::then)),
      ", replicas ", FromTo(plan.replicas_now, plan.replicas_then), "\n\n");
}

// Two cells.
void AddSum(const MemberEnd& end, std::vector<std::string>& row) {
  row.push_back(end.is_member ? WithCommas(end.owned.partitions) : "-");
  row.push_back(end.is_member ? FormatBytes(end.owned.bytes) : "-");
}

void AddSum(const PartitionSum& sum, std::vector<std::string>& row) {
  row.push_back(sum.partitions > 0 ? WithCommas(sum.partitions) : "-");
  row.push_back(sum.partitions > 0 ? FormatBytes(sum.bytes) : "-");
}

std::string MembersAsText(const MovePlan& plan) {
  Rows rows = {{"MEMBER", "", "NOW", "BYTES", "THEN", "BYTES", "RECEIVES",
                "BYTES", "GIVES UP", "BYTES", "PEAK"}};
  for (const MemberMoves& member : plan.members) {
    std::vector<std::string> row = {Printable(member.name), ChangeOf(member)};
    AddSum(member.now, row);
    AddSum(member.then, row);
    AddSum(member.to_receive, row);
    AddSum(member.to_give_up, row);
    row.push_back(FormatBytes(member.peak_bytes()));
    rows.push_back(std::move(row));
  }
  return FormatTable(rows);
}

std::string MovedAsText(const MovePlan& plan) {
  if (plan.moved.partitions == 0) return "nothing moves\n";
  std::string text = absl::StrCat("moves ", SumAsText(plan.moved));
  if (plan.least.bytes > 0) {
    absl::StrAppend(&text, ": ", absl::StrFormat("%.2f", MovedByLeast(plan)),
                    " times the least possible (", SumAsText(plan.least), ")");
  }
  return text + "\n";
}

std::string FullestAsText(const MovePlan& plan) {
  const MemberMoves* now = Fullest(plan, &MemberMoves::now);
  const MemberMoves* then = Fullest(plan, &MemberMoves::then);
  if (now == nullptr || then == nullptr) return "";
  return absl::StrFormat("fullest: %s, %.2f of its share (now %s, %.2f)\n",
                         Printable(then->name), then->then.of_share(),
                         Printable(now->name), now->now.of_share());
}

Json SumAsJson(const PartitionSum& sum) {
  return {{"partitions", sum.partitions}, {"bytes", sum.bytes}};
}

Json EndAsJson(const MemberEnd& end) {
  if (!end.is_member) return nullptr;
  return {{"capacity", end.capacity},
          {"partitions", end.owned.partitions},
          {"bytes", end.owned.bytes},
          {"of_share", end.of_share()}};
}

Json FullestAsJson(const MovePlan& plan, MemberEnd MemberMoves::*end) {
  const MemberMoves* fullest = Fullest(plan, end);
  if (fullest == nullptr) return nullptr;
  return {{"name", fullest->name}, {"of_share", (fullest->*end).of_share()}};
}

}  // namespace

std::string PlanAsText(const PlanReport& report) {
  std::string text =
      absl::StrCat(HeadAsText(report), MembersAsText(report.plan), "\n",
                   MovedAsText(report.plan), FullestAsText(report.plan));
  for (const std::string& note : report.notes) {
    absl::StrAppend(&text, "note: ", note, "\n");
  }
  return text;
}

std::string PlanAsJson(const PlanReport& report) {
  const MovePlan& plan = report.plan;
  Json json = {
      {"format", "engram-plan/1"},
      {"version",
       report.version.empty() ? Json(nullptr) : Json(report.version)},
      {"table", SumAsJson(plan.table)},
      {"replicas", {{"now", plan.replicas_now}, {"then", plan.replicas_then}}},
      {"members", Json::array()},
      {"moved", SumAsJson(plan.moved)},
      {"least", SumAsJson(plan.least)},
      {"moved_by_least",
       plan.least.bytes > 0 ? Json(MovedByLeast(plan)) : Json(nullptr)},
      {"fullest",
       {{"now", FullestAsJson(plan, &MemberMoves::now)},
        {"then", FullestAsJson(plan, &MemberMoves::then)}}},
      {"notes", report.notes}};
  for (const MemberMoves& member : plan.members) {
    json["members"].push_back({{"name", member.name},
                               {"change", ChangeOf(member)},
                               {"now", EndAsJson(member.now)},
                               {"then", EndAsJson(member.then)},
                               {"to_receive", SumAsJson(member.to_receive)},
                               {"to_give_up", SumAsJson(member.to_give_up)},
                               {"peak_bytes", member.peak_bytes()}});
  }
  // Names come from other processes: bytes that are not UTF-8 are replaced.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace engram::ctl
