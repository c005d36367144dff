// The JSON of `engramctl heat`, format "engram-heat/1". Numbers of rows and
// shares of lookups are estimates unless sample_share is 1 (HeatSummary says
// how they are made); lookups and what is by partition are exact. An error is
// one standard error. Versions in full; names may be anything.
//
//   time_unix_ms       when it ended
//   seconds            that were asked for
//   version, row_bytes, rows_of_table
//   servers[]          address, name (null: unknown), error or lookups, seconds
//   lookups            rows asked for, duplicates counted
//   rows, rows_error   that were asked for at least once
//   sample_share       of all rows, those with exact counts; sampled_rows: how
//                      many of them were asked for
//   hot_from           rows asked for so often are counted by name, from one in
//                      lookups_per_hit of their lookups; null: none are.
//                      named_rows: how many
//   histogram[]        rows asked for least .. most times: rows, rows_error,
//                      lookups, share_of_rows, share_of_lookups
//   hottest_rows[]     rows; share: of lookups that the hottest so many rows
//                      get, share_error; bytes of these rows; cache_mb: the
//                      --cache-mb that has room for them (null: none has)
//   coverage[]         share; rows: the fewest that get it; bytes, cache_mb
//   layers[]           layer_id, lookups, partitions, partitions_asked:
//                      at all; max_over_mean, p99_over_mean: of those;
//                      partition_lookups[partition]
//   top_rows[]         layer_id, row, lookups, share_of_lookups, exact

#include <nlohmann/json.hpp>

#include "engram_client/ctl/heat_report.h"

namespace engram::ctl {
namespace {

using Json = nlohmann::ordered_json;

double Share(double part, uint64_t whole) {
  return whole == 0 ? 0 : part / static_cast<double>(whole);
}

Json ServersAsJson(const HeatReport& report) {
  Json servers = Json::array();
  for (const ServerHeat& server : report.servers) {
    Json json = {
        {"address", server.address},
        {"name", server.name.empty() ? Json(nullptr) : Json(server.name)}};
    if (server.error.empty()) {
      json["lookups"] = server.lookups();
      json["seconds"] = static_cast<double>(server.elapsed_ms) / 1000;
    } else {
      json["error"] = server.error;
    }
    servers.push_back(json);
  }
  return servers;
}

Json HistogramAsJson(const HeatReport& report) {
  Json histogram = Json::array();
  for (const HeatSummary::Bucket& bucket : report.summary.histogram) {
    histogram.push_back(
        {{"least", bucket.least},
         {"most", bucket.most},
         {"rows", bucket.rows},
         {"rows_error", bucket.rows_error},
         {"lookups", bucket.lookups},
         {"share_of_rows", bucket.rows / report.summary.rows},
         {"share_of_lookups", Share(bucket.lookups, report.heat.lookups)}});
  }
  return histogram;
}

Json PointAsJson(const HeatSummary::Point& point) {
  return {
      {"rows", point.rows},
      {"share", point.share},
      {"share_error", point.share_error},
      {"bytes", point.bytes},
      {"cache_mb", point.cache_mb == 0 ? Json(nullptr) : Json(point.cache_mb)}};
}

Json LayersAsJson(const HeatReport& report) {
  Json layers = Json::array();
  for (size_t i = 0; i < report.summary.layers.size(); ++i) {
    const HeatSummary::Layer& layer = report.summary.layers[i];
    layers.push_back(
        {{"layer_id", layer.layer_id},
         {"lookups", layer.lookups},
         {"partitions", layer.partitions},
         {"partitions_asked", layer.partitions_asked},
         {"max_over_mean", layer.max_over_mean},
         {"p99_over_mean", layer.p99_over_mean},
         {"partition_lookups", report.heat.layers[i].partition_lookups}});
  }
  return layers;
}

Json TopAsJson(const HeatReport& report) {
  Json top = Json::array();
  for (const HeatSummary::TopRow& row : report.summary.top) {
    top.push_back({{"layer_id", row.layer_id},
                   {"row", row.row},
                   {"lookups", row.lookups},
                   {"share_of_lookups", Share(static_cast<double>(row.lookups),
                                              report.heat.lookups)},
                   {"exact", row.exact}});
  }
  return top;
}

}  // namespace

std::string HeatAsJson(const HeatReport& report) {
  const HeatSummary& summary = report.summary;
  Json json = {
      {"format", "engram-heat/1"},
      {"time_unix_ms", absl::ToUnixMillis(report.time)},
      {"seconds", absl::ToDoubleSeconds(report.duration)},
      {"version", report.heat.version},
      {"row_bytes", report.heat.row_bytes},
      {"rows_of_table", report.heat.rows},
      {"servers", ServersAsJson(report)},
      {"lookups", report.heat.lookups},
      {"rows", summary.rows},
      {"rows_error", summary.rows_error},
      {"sample_share", summary.sample_share},
      {"sampled_rows", summary.sampled_rows},
      {"hot_from",
       summary.hot_from.has_value() ? Json(*summary.hot_from) : Json(nullptr)},
      {"named_rows", summary.named_rows},
      {"lookups_per_hit", report.heat.lookups_per_hit},
      {"histogram", HistogramAsJson(report)},
      {"hottest_rows", Json::array()},
      {"coverage", Json::array()},
      {"layers", LayersAsJson(report)},
      {"top_rows", TopAsJson(report)}};
  for (const HeatSummary::Point& point : summary.curve) {
    json["hottest_rows"].push_back(PointAsJson(point));
  }
  for (const HeatSummary::Point& point : summary.coverage) {
    json["coverage"].push_back(PointAsJson(point));
  }
  // Names come from other processes: bytes that are not UTF-8 are replaced.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace engram::ctl
