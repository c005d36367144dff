// The JSON of `engramctl load`, format "engram-load/1":
//
//   options           the command line as it was understood
//   all, sizes[]      counts, rates and latencies; in sizes with the size
//   failures[]        code, reason, count, first message, latencies
//   client            what the client counts, warm-up included
//   send_delay_ms     how late the load itself was
//   seconds[]         what happened in each second, warm-up included
//   mismatch          null, or what was wrong
//
// Latencies are in milliseconds, from the time at which the schedule had the
// call. A histogram is a list of [from, to, count].

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engram_client/ctl/load_report.h"

namespace engram::ctl {
namespace {

using Json = nlohmann::ordered_json;

double Ms(absl::Duration duration) {
  return absl::ToDoubleMilliseconds(duration);
}

Json QuantilesAsJson(const LatencyHistogram& histogram) {
  if (histogram.count() == 0) return nullptr;
  return {{"min", Ms(histogram.min())},
          {"mean", Ms(histogram.mean())},
          {"p50", Ms(histogram.Quantile(0.5))},
          {"p90", Ms(histogram.Quantile(0.9))},
          {"p99", Ms(histogram.Quantile(0.99))},
          {"p99_9", Ms(histogram.Quantile(0.999))},
          {"max", Ms(histogram.max())}};
}

Json HistogramAsJson(const LatencyHistogram& histogram) {
  Json buckets = Json::array();
  for (const LatencyHistogram::Bucket& bucket : histogram.buckets()) {
    buckets.push_back({Ms(bucket.from), Ms(bucket.to), bucket.count});
  }
  return buckets;
}

Json CountsAsJson(const LoadCounts& counts, const std::string& unit,
                  double seconds) {
  const auto per_second = [seconds](double count) -> Json {
    if (seconds <= 0) return nullptr;
    return count / seconds;
  };
  return {
      {"calls", counts.calls},
      {"ok", counts.ok},
      {"failed", counts.failed},
      {"not_sent", counts.not_sent},
      {"wrong", counts.wrong},
      {unit, counts.units},
      {absl::StrCat(unit, "_checked"), counts.units_checked},
      {"bytes", counts.bytes},
      {absl::StrCat(unit, "_per_second"),
       per_second(static_cast<double>(counts.units))},
      {"mb_per_second", per_second(static_cast<double>(counts.bytes) / 1e6)},
      {"server_calls", counts.server_calls},
      {"wire_bytes", counts.wire_bytes},
      {"latency_ms", QuantilesAsJson(counts.latency)},
      {"latency_histogram_ms", HistogramAsJson(counts.latency)}};
}

Json OptionsAsJson(const LoadPlan& plan) {
  const LoadFlags& flags = plan.flags;
  Json layers = flags.layers;
  if (flags.layers.empty()) layers = nullptr;
  Json json = {{"addresses", plan.addresses},
               {"members", plan.members},
               {"rate", flags.rate},
               {"arrivals", flags.arrivals},
               {"layers", layers},
               {"seed", flags.seed},
               {"duration_seconds", flags.duration_seconds},
               {"warmup_seconds", flags.warmup_seconds},
               {"deadline_ms", flags.deadline_ms},
               {"max_in_flight", plan.engine.max_in_flight},
               {"threads", flags.threads},
               {"check_threads", flags.check_threads},
               {"check", flags.check}};
  if (!flags.checkpoint.empty()) json["checkpoint"] = flags.checkpoint;
  if (flags.synthetic.has_value()) json["synthetic"] = *flags.synthetic;
  if (flags.steps()) {
    json["tokens"] = flags.tokens;
    json["mode"] = flags.mode;
    json["return"] = flags.what;
    json["inputs"] = flags.inputs;
  } else {
    json["rows"] = flags.rows;
    json["zipf"] = flags.zipf;
    json["crc32c"] = flags.want_crc32c;
  }
  return json;
}

Json FailureAsJson(const LoadFailure& failure) {
  return {{"code", failure.code},
          {"reason", failure.reason},
          {"count", failure.count},
          {"first_message", failure.first_message},
          {"latency_ms", QuantilesAsJson(failure.latency)}};
}

Json SecondAsJson(const LoadSecond& second) {
  return {{"from_seconds", second.from_seconds},
          {"seconds", second.seconds},
          {"sent", second.sent},
          {"ok", second.ok},
          {"failed", second.failed},
          {"not_sent", second.not_sent},
          {"in_flight", second.in_flight},
          {"p50_ms", Ms(second.p50)},
          {"p99_ms", Ms(second.p99)},
          {"max_ms", Ms(second.max)}};
}

Json MismatchAsJson(const LoadMismatch& mismatch, bool steps) {
  return {{"version", mismatch.version},
          {"layer", ToInt(mismatch.layer)},
          {steps ? "input" : "row", mismatch.item},
          {steps ? "token" : "slot", mismatch.slot},
          {"byte", mismatch.byte},
          {"wanted", mismatch.wanted},
          {"got", mismatch.got},
          {"wrong", mismatch.wrong},
          {"text", mismatch.text}};
}

template <typename T, typename AsJson>
Json ListAsJson(const std::vector<T>& values, const AsJson& as_json) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(as_json(value));
  return list;
}

}  // namespace

std::string LoadAsJson(const LoadPlan& plan, const LoadSubject& subject,
                       const LoadResults& results) {
  const double seconds = results.measured_seconds;
  Json sizes = Json::array();
  for (size_t i = 0; i < results.sizes.size(); ++i) {
    Json size = {{"size", plan.sizes()[i].size},
                 {"weight", plan.sizes()[i].weight}};
    size.update(CountsAsJson(results.sizes[i], subject.unit, seconds));
    sizes.push_back(std::move(size));
  }
  Json json = {{"format", "engram-load/1"},
               {"kind", plan.flags.steps() ? "steps" : "gathers"},
               {"version", subject.version},
               {"options", OptionsAsJson(plan)},
               {"exit_code", LoadExitCode(results)},
               {"measured_seconds", seconds},
               {"interrupted", results.interrupted},
               {"unfinished", results.unfinished},
               {"all", CountsAsJson(results.Sum(), subject.unit, seconds)},
               {"sizes", std::move(sizes)},
               {"failures", ListAsJson(results.failures, FailureAsJson)},
               {"not_sent_for_checks", results.not_sent_for_checks},
               {"send_delay_ms", QuantilesAsJson(results.send_delay)},
               {"deadline_overrun_ms", Ms(results.deadline_overrun)},
               {"warmup",
                {{"calls", results.warmup_calls},
                 {"failed", results.warmup_failed},
                 {"not_sent", results.warmup_not_sent}}},
               {"mismatch", nullptr},
               {"seconds", ListAsJson(results.seconds, SecondAsJson)}};
  for (const auto& [name, count] : subject.client_counts) {
    json["client"][name] = count;
  }
  if (results.mismatch.has_value()) {
    json["mismatch"] = MismatchAsJson(*results.mismatch, plan.flags.steps());
  }
  // Messages come from other processes: bytes that are not UTF-8 are replaced.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace engram::ctl
