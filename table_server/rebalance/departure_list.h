#ifndef ENGRAM_TABLE_SERVER_REBALANCE_DEPARTURE_LIST_H_
#define ENGRAM_TABLE_SERVER_REBALANCE_DEPARTURE_LIST_H_

#include <google/protobuf/repeated_field.h>

#include <vector>

#include "engram/v1/table.pb.h"
#include "table_server/membership/departures.h"

namespace engram {

// Departures as the wire has them.
using DepartureList = google::protobuf::RepeatedPtrField<v1::Departure>;

inline DepartureList ToDepartureList(
    const std::vector<MemberDeparture>& departures) {
  DepartureList list;
  for (const MemberDeparture& departure : departures) {
    v1::Departure* const out = list.Add();
    out->set_server_name(departure.name);
    out->set_instance_id(departure.instance_id);
  }
  return list;
}

inline std::vector<MemberDeparture> FromDepartureList(
    const DepartureList& list) {
  std::vector<MemberDeparture> departures;
  for (const v1::Departure& departure : list) {
    departures.push_back({departure.server_name(), departure.instance_id()});
  }
  return departures;
}

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_REBALANCE_DEPARTURE_LIST_H_
