#ifndef ENGRAM_TABLE_SERVER_MEMBERSHIP_DEPARTURES_H_
#define ENGRAM_TABLE_SERVER_MEMBERSHIP_DEPARTURES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"

namespace engram {

// A server that left for good. An instance of the name with a greater id is
// back.
struct MemberDeparture {
  std::string name;
  uint64_t instance_id = 0;

  friend bool operator==(const MemberDeparture&,
                         const MemberDeparture&) = default;
};

// Who left for good: of each name the latest instance that did.
//
// Not thread-safe.
class Departures {
 public:
  static constexpr size_t kMax = 4096;

  // Ignored: names that no server can have, and 0, which no instance has.
  void Add(const MemberDeparture& departure);
  // Keeps the kMax latest.
  void Trim();
  // An instance of it is there: earlier ones do not count any more.
  void Returned(absl::string_view name, uint64_t instance_id);

  // Whether this instance, or a later one, left.
  bool HasLeft(absl::string_view name, uint64_t instance_id) const;
  // By name.
  std::vector<MemberDeparture> All() const;

 private:
  absl::btree_map<std::string, uint64_t> instance_ids_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_MEMBERSHIP_DEPARTURES_H_
