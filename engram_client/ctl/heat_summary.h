#ifndef ENGRAM_ENGRAM_CLIENT_CTL_HEAT_SUMMARY_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_HEAT_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engram_client/ctl/heat_merge.h"

namespace engram::ctl {

// What an operator wants to know of ClusterHeat. Numbers of rows and shares are
// estimates unless the sample has all rows; an error is one standard error.
//
// How they are estimated: rows that are asked for often are known by name (the
// hot rows), those that are not stand in the sample, each for 1 / sample_share
// rows. All lookups are known exactly: where those of named rows and of the
// sample's do not add up to them, sampled rows are given, or lose, the rest in
// proportion to their variance, which is the best linear correction. A sample
// alone would say little of the hottest.
struct HeatSummary {
  struct Bucket {
    uint64_t least = 0;  // lookups a row
    uint64_t most = 0;
    double rows = 0;
    double rows_error = 0;
    double lookups = 0;
  };
  // The hottest rows, and what share of all lookups they get: an upper bound of
  // what a cache of so many rows answers, which few caches come near.
  struct Point {
    double rows = 0;
    double share = 0;
    double share_error = 0;
    uint64_t bytes = 0;     // of packed rows
    uint64_t cache_mb = 0;  // --cache-mb that has so many rows; 0: too many
  };
  struct Layer {
    uint32_t layer_id = 0;
    uint64_t lookups = 0;
    size_t partitions = 0;
    size_t partitions_asked = 0;  // at all; the mean is over these
    double max_over_mean = 0;
    double p99_over_mean = 0;
  };
  struct TopRow {
    uint32_t layer_id = 0;
    uint32_t row = 0;
    uint64_t lookups = 0;
    bool exact = false;
  };

  double sample_share = 0;  // of all rows
  size_t sampled_rows = 0;
  double rows = 0;  // that were asked for
  double rows_error = 0;
  // Rows asked for at least as often are counted as hot rows, others by the
  // sample. None: all by the sample.
  std::optional<uint64_t> hot_from;
  size_t named_rows = 0;  // so many of them
  std::vector<Bucket> histogram;
  std::vector<Point> curve;     // 1, 2, 5, 10 ... rows
  std::vector<Point> coverage;  // rows for shares of 10 .. 99 %
  std::vector<Layer> layers;
  std::vector<TopRow> top;
};

// With the `top` hottest rows.
HeatSummary Summarize(const ClusterHeat& heat, size_t top);

// The least whole number of MB (10^6) of a row cache (core/cache) for so many
// rows; 0: it cannot have as many.
uint64_t CacheMbFor(double rows, uint64_t row_bytes);

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_HEAT_SUMMARY_H_
