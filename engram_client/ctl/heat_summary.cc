#include "engram_client/ctl/heat_summary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/cache/cache_layout.h"
#include "core/wire/heat_hash.h"
#include "engram_client/ctl/heat_curve.h"

namespace engram::ctl {
namespace {

constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
// Hot rows are taken where their counts are right within an eighth, or by
// chance a sixth.
constexpr uint64_t kMinHits = 32;
constexpr uint64_t kTimesMissed = 8;
constexpr uint64_t kMaxHotFrom = uint64_t{1} << 56;  // of a sane server
constexpr double kCoverages[] = {0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99};
constexpr double kMaxRows = 4294967295.0;

double SampleShare(uint64_t last_hash) {
  return last_hash == kAll
             ? 1
             : std::ldexp(static_cast<double>(last_hash) + 1, -64);
}

std::optional<uint64_t> HotFrom(const ClusterHeat& heat) {
  if (heat.last_hash == kAll || heat.lookups_per_hit == 0 ||
      heat.lookups_per_hit > kMaxHotFrom / kMinHits ||
      heat.hot_missed > kMaxHotFrom / kTimesMissed) {
    return std::nullopt;
  }
  return std::bit_ceil(std::max(kMinHits * heat.lookups_per_hit,
                                kTimesMissed * heat.hot_missed));
}

// Those that are known by name: exactly where the sample has them.
std::vector<HeatSummary::TopRow> NamedRows(const ClusterHeat& heat) {
  absl::flat_hash_map<uint64_t, HeatSummary::TopRow> rows;
  const auto add = [&](const RowHeat& row, bool exact) {
    rows.insert_or_assign(
        row.key, HeatSummary::TopRow{.layer_id = ToInt(LayerOfHeatKey(row.key)),
                                     .row = RowOfHeatKey(row.key),
                                     .lookups = row.lookups,
                                     .exact = exact});
  };
  if (heat.last_hash != kAll) {
    for (const RowHeat& row : heat.hot) add(row, false);
  }
  for (const RowHeat& row : heat.sample) add(row, true);
  std::vector<HeatSummary::TopRow> named;
  named.reserve(rows.size());
  for (const auto& [key, row] : rows) named.push_back(row);
  std::sort(named.begin(), named.end(), [](const auto& a, const auto& b) {
    return std::tuple(b.lookups, a.layer_id, a.row) <
           std::tuple(a.lookups, b.layer_id, b.row);
  });
  return named;
}

// Lookups of rows, the most first.
struct Split {
  std::vector<uint64_t> named;    // at least hot_from
  std::vector<uint64_t> sampled;  // fewer
};

Split SplitRows(const ClusterHeat& heat,
                const std::vector<HeatSummary::TopRow>& named,
                std::optional<uint64_t> hot_from) {
  Split split;
  for (const HeatSummary::TopRow& row : named) {
    if (!hot_from.has_value() || row.lookups < *hot_from) break;
    split.named.push_back(row.lookups);
  }
  for (const RowHeat& row : heat.sample) {
    if (hot_from.has_value() && row.lookups >= *hot_from) continue;
    split.sampled.push_back(row.lookups);
  }
  return split;
}

std::vector<HeatSummary::Bucket> Histogram(const Split& split, double share) {
  std::map<int, HeatSummary::Bucket> buckets;
  const auto add = [&](uint64_t lookups, double rows) {
    if (lookups == 0) return;
    const int bits = std::bit_width(lookups);
    HeatSummary::Bucket& bucket = buckets[bits];
    bucket.least = uint64_t{1} << (bits - 1);
    bucket.most = bucket.least + (bucket.least - 1);
    bucket.rows += rows;
    bucket.lookups += rows * static_cast<double>(lookups);
    // Of each row that stands for more than itself.
    bucket.rows_error += rows * rows * (1 - 1 / rows);
  };
  for (const uint64_t lookups : split.named) add(lookups, 1);
  for (const uint64_t lookups : split.sampled) add(lookups, 1 / share);
  std::vector<HeatSummary::Bucket> histogram;
  for (auto& [bits, bucket] : buckets) {
    bucket.rows_error = std::sqrt(bucket.rows_error);
    histogram.push_back(bucket);
  }
  return histogram;
}

HeatSummary::Layer Partitions(const LayerHeat& layer) {
  HeatSummary::Layer out{.layer_id = layer.layer_id,
                         .partitions = layer.partition_lookups.size()};
  std::vector<uint64_t> asked;
  for (const uint64_t lookups : layer.partition_lookups) {
    if (lookups > 0) asked.push_back(lookups);
    out.lookups += lookups;
  }
  out.partitions_asked = asked.size();
  if (asked.empty()) return out;
  std::sort(asked.begin(), asked.end());
  const double mean =
      static_cast<double>(out.lookups) / static_cast<double>(asked.size());
  const size_t p99 = (asked.size() * 99 + 99) / 100 - 1;
  out.max_over_mean = static_cast<double>(asked.back()) / mean;
  out.p99_over_mean = static_cast<double>(asked[p99]) / mean;
  return out;
}

HeatSummary::Point PointOf(const HeatCurve& curve, double rows,
                           uint64_t row_bytes) {
  return {.rows = rows,
          .share = curve.ShareOf(rows),
          .share_error = curve.ErrorOf(rows),
          .bytes = static_cast<uint64_t>(rows) * row_bytes,
          .cache_mb = CacheMbFor(rows, row_bytes)};
}

void AddPoints(const HeatCurve& curve, uint64_t row_bytes,
               HeatSummary& summary) {
  for (double decade = 1; decade < curve.rows(); decade *= 10) {
    for (const double step : {1, 2, 5}) {
      if (step * decade >= curve.rows()) break;
      summary.curve.push_back(PointOf(curve, step * decade, row_bytes));
    }
  }
  if (curve.rows() == 0) return;
  for (const double share : kCoverages) {
    HeatSummary::Point point = PointOf(curve, curve.RowsFor(share), row_bytes);
    point.share = share;
    summary.coverage.push_back(point);
  }
}

}  // namespace

HeatSummary Summarize(const ClusterHeat& heat, size_t top) {
  HeatSummary summary;
  summary.sample_share = SampleShare(heat.last_hash);
  summary.sampled_rows = heat.sample.size();
  summary.hot_from = HotFrom(heat);
  std::vector<HeatSummary::TopRow> named = NamedRows(heat);
  Split split = SplitRows(heat, named, summary.hot_from);
  summary.named_rows = split.named.size();
  const double share = summary.sample_share;
  const auto sampled = static_cast<double>(split.sampled.size());
  summary.rows = static_cast<double>(split.named.size()) + sampled / share;
  summary.rows_error = std::sqrt(sampled * (1 - share)) / share;
  summary.histogram = Histogram(split, share);
  for (const LayerHeat& layer : heat.layers) {
    summary.layers.push_back(Partitions(layer));
  }
  const HeatCurve curve(std::move(split.named), std::move(split.sampled), share,
                        heat.lookups, heat.lookups_per_hit);
  AddPoints(curve, heat.row_bytes, summary);
  named.resize(std::min(named.size(), top));
  summary.top = std::move(named);
  return summary;
}

uint64_t CacheMbFor(double rows, uint64_t row_bytes) {
  // What a cache takes beside its layout: what keeps it and each of its shards,
  // and the names of tables.
  constexpr uint64_t kFixedBytes = 16 << 10;
  constexpr uint64_t kShardBytes = 1024;
  constexpr uint64_t kNameShare = 128;
  constexpr uint64_t kMaxMb = uint64_t{1} << 24;
  constexpr uint64_t kMaxRowBytes = 1 << 20;
  if (rows > kMaxRows || row_bytes == 0 || row_bytes > kMaxRowBytes) return 0;
  const auto has_room = [&](uint64_t mb) {
    const uint64_t bytes = mb * 1'000'000;
    const absl::StatusOr<CacheLayout> layout = CacheLayout::Within(
        bytes - bytes / kNameShare - kFixedBytes, row_bytes, kShardBytes);
    return layout.ok() && static_cast<double>(layout->slots()) >= rows;
  };
  uint64_t high = 1;
  while (!has_room(high)) {
    high *= 2;
    if (high > kMaxMb) return 0;
  }
  uint64_t low = high / 2;  // has no room
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (has_room(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace engram::ctl
