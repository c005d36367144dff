#include "table_server/membership/departures.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/membership/member.h"

namespace engram {

void Departures::Add(const MemberDeparture& departure) {
  if (departure.instance_id == 0) return;
  if (!CheckServerName(departure.name).ok()) return;
  uint64_t& id = instance_ids_[departure.name];
  id = std::max(id, departure.instance_id);
}

void Departures::Trim() {
  if (instance_ids_.size() <= kMax) return;
  std::vector<std::pair<uint64_t, std::string>> latest;
  for (const auto& [name, id] : instance_ids_) latest.emplace_back(id, name);
  const auto end_of_kept = latest.begin() + kMax;
  std::nth_element(latest.begin(), end_of_kept, latest.end(), std::greater<>());
  for (auto it = end_of_kept; it != latest.end(); ++it) {
    instance_ids_.erase(it->second);
  }
}

void Departures::Returned(absl::string_view name, uint64_t instance_id) {
  const auto it = instance_ids_.find(name);
  if (it != instance_ids_.end() && it->second < instance_id) {
    instance_ids_.erase(it);
  }
}

bool Departures::HasLeft(absl::string_view name, uint64_t instance_id) const {
  const auto it = instance_ids_.find(name);
  return it != instance_ids_.end() && it->second >= instance_id;
}

std::vector<MemberDeparture> Departures::All() const {
  std::vector<MemberDeparture> all;
  all.reserve(instance_ids_.size());
  for (const auto& [name, id] : instance_ids_) all.push_back({name, id});
  return all;
}

}  // namespace engram
