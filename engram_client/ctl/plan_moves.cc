#include "engram_client/ctl/plan_moves.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/types/span.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"

namespace engram::ctl {
namespace {

// Who owns what at one end of the change.
struct Side {
  Placement placement;
  std::vector<size_t> member;  // in MovePlan::members, by placement's members
};

void Add(PartitionSum& sum, const PartitionSum& more) {
  sum.partitions += more.partitions;
  sum.bytes += more.bytes;
}

uint64_t Excess(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

bool Contains(absl::Span<const size_t> owners, size_t member) {
  return std::find(owners.begin(), owners.end(), member) != owners.end();
}

absl::StatusOr<Placement> Place(const TableInfo& table,
                                const std::string& table_name,
                                const Ownership& ownership) {
  Placement::Options options{.table = table_name,
                             .members = ownership.members,
                             .replicas = ownership.replicas};
  for (const TableInfo::Layer& layer : table.layers) {
    options.layers.push_back({layer.layer_id, layer.partition_count});
  }
  return Placement::Create(std::move(options));
}

// Copies of the table that each capacity gives a right to. Where that is more
// than one copy it is one, and the others share the rest.
std::vector<double> Shares(absl::Span<const PlacementMember> members,
                           uint32_t replicas) {
  std::vector<size_t> order(members.size());  // largest first
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return members[a].capacity > members[b].capacity;
  });
  const double largest = members[order[0]].capacity;
  std::vector<double> rest(order.size());  // capacity from here on
  double sum = 0;
  for (size_t i = order.size(); i-- > 0;) {
    sum += members[order[i]].capacity / largest;
    rest[i] = sum;
  }
  double left = std::min<double>(replicas, static_cast<double>(order.size()));
  std::vector<double> shares(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const double part = members[order[i]].capacity / largest / rest[i];
    shares[order[i]] = std::min(1.0, left * part);
    left -= shares[order[i]];
  }
  return shares;
}

PartitionSum SizeOf(const TableInfo& table, size_t layer, uint32_t partition) {
  const uint64_t first_row = partition * table.partition_rows;
  const uint64_t rows =
      std::min(table.partition_rows, table.layers[layer].row_count - first_row);
  return {1, rows * table.row_format.row_bytes()};
}

PartitionSum SizeOf(const TableInfo& table) {
  PartitionSum size;
  for (const TableInfo::Layer& layer : table.layers) {
    size.partitions += layer.partition_count;
    size.bytes += layer.row_count * table.row_format.row_bytes();
  }
  return size;
}

// As members of the plan.
void OwnersOf(const Side& side, size_t layer, uint32_t partition,
              std::vector<size_t>& owners) {
  owners.clear();
  for (const uint32_t owner :
       side.placement.Owners(layer, PartitionId{partition})) {
    owners.push_back(side.member[owner]);
  }
}

void AddLayer(const TableInfo& table, size_t layer, const Side& now,
              const Side& then, MovePlan& plan) {
  std::vector<PartitionSum> before(plan.members.size());
  std::vector<PartitionSum> after(plan.members.size());
  std::vector<size_t> owners_now;
  std::vector<size_t> owners_then;
  for (uint32_t p = 0; p < table.layers[layer].partition_count; ++p) {
    const PartitionSum size = SizeOf(table, layer, p);
    OwnersOf(now, layer, p, owners_now);
    OwnersOf(then, layer, p, owners_then);
    for (const size_t owner : owners_now) {
      Add(before[owner], size);
      if (Contains(owners_then, owner)) continue;
      Add(plan.members[owner].to_give_up, size);
    }
    for (const size_t owner : owners_then) {
      Add(after[owner], size);
      if (Contains(owners_now, owner)) continue;
      Add(plan.members[owner].to_receive, size);
      Add(plan.moved, size);
    }
  }
  for (size_t i = 0; i < plan.members.size(); ++i) {
    Add(plan.members[i].now.owned, before[i]);
    Add(plan.members[i].then.owned, after[i]);
    Add(plan.least, {Excess(after[i].partitions, before[i].partitions),
                     Excess(after[i].bytes, before[i].bytes)});
  }
}

// Puts one end's members into the plan, which has the names already.
void Join(const Ownership& ownership, Side& side, MemberEnd MemberMoves::*end,
          MovePlan& plan) {
  const absl::Span<const PlacementMember> members = side.placement.members();
  const std::vector<double> shares = Shares(members, ownership.replicas);
  for (size_t i = 0; i < members.size(); ++i) {
    const auto joined = std::lower_bound(
        plan.members.begin(), plan.members.end(), members[i].name,
        [](const MemberMoves& m, const std::string& n) { return m.name < n; });
    (*joined).*
        end = {.is_member = true,
               .capacity = members[i].capacity,
               .share = shares[i] * static_cast<double>(plan.table.partitions)};
    side.member.push_back(joined - plan.members.begin());
  }
}

std::vector<MemberMoves> AllMembers(const Placement& now,
                                    const Placement& then) {
  std::set<std::string> names;
  for (const Placement* placement : {&now, &then}) {
    for (const PlacementMember& member : placement->members()) {
      names.insert(member.name);
    }
  }
  std::vector<MemberMoves> members;
  for (const std::string& name : names) members.push_back({.name = name});
  return members;
}

}  // namespace

absl::StatusOr<MovePlan> PlanMoves(const TableInfo& table,
                                   const std::string& table_name,
                                   const Ownership& now,
                                   const Ownership& then) {
  absl::StatusOr<Placement> placed_now = Place(table, table_name, now);
  if (!placed_now.ok()) return Annotate(placed_now.status(), "members now");
  absl::StatusOr<Placement> placed_then = Place(table, table_name, then);
  if (!placed_then.ok()) return Annotate(placed_then.status(), "members then");

  MovePlan plan{.table = SizeOf(table),
                .replicas_now = now.replicas,
                .replicas_then = then.replicas,
                .members = AllMembers(*placed_now, *placed_then)};
  Side from{*std::move(placed_now), {}};
  Side to{*std::move(placed_then), {}};
  Join(now, from, &MemberMoves::now, plan);
  Join(then, to, &MemberMoves::then, plan);
  for (size_t layer = 0; layer < table.layers.size(); ++layer) {
    AddLayer(table, layer, from, to, plan);
  }
  return plan;
}

const MemberMoves* Fullest(const MovePlan& plan, MemberEnd MemberMoves::*end) {
  const MemberMoves* fullest = nullptr;
  for (const MemberMoves& member : plan.members) {
    if (!(member.*end).is_member) continue;
    if (fullest != nullptr &&
        (member.*end).of_share() <= (fullest->*end).of_share()) {
      continue;
    }
    fullest = &member;
  }
  return fullest;
}

}  // namespace engram::ctl
