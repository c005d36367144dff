#include "tests/bench/batches.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"

namespace engram::bench {
namespace {

constexpr size_t kMinRows = 1 << 20;  // of a pool, some 280 MB of table
constexpr size_t kMinBatches = 64;
constexpr size_t kRowsOfOneToken = 24;
constexpr uint64_t kSeed = 20240607;

using Draw = std::function<RowId(std::mt19937_64&)>;

Draw DrawUniform(uint32_t row_count) {
  return [row_count](std::mt19937_64& random) {
    return std::uniform_int_distribution<RowId>(0, row_count - 1)(random);
  };
}

// P(rank k) ~ 1 / k. Ranks are scattered over the table, as a hash does.
Draw DrawZipf(uint32_t row_count) {
  std::vector<double> cumulative(row_count);
  double sum = 0;
  for (uint32_t rank = 0; rank < row_count; ++rank) {
    sum += 1.0 / (rank + 1);
    cumulative[rank] = sum;
  }
  uint64_t step = 2654435761;
  while (std::gcd(step, uint64_t{row_count}) != 1) ++step;
  return [cumulative = std::move(cumulative), sum, step,
          row_count](std::mt19937_64& random) {
    const double at = std::uniform_real_distribution<double>(0, sum)(random);
    const auto found =
        std::upper_bound(cumulative.begin(), cumulative.end(), at);
    const uint64_t rank =
        std::min<uint64_t>(found - cumulative.begin(), cumulative.size() - 1);
    return static_cast<RowId>(rank * step % row_count);
  };
}

// Rows of each layer in batch `batch_index`.
std::vector<size_t> Split(size_t rows, size_t layers, size_t batch_index) {
  std::vector<size_t> split(layers, 0);
  if (rows <= kRowsOfOneToken) {
    split[batch_index % layers] = rows;
    return split;
  }
  for (size_t i = 0; i < layers; ++i) {
    split[i] = rows / layers + (i < rows % layers ? 1 : 0);
  }
  return split;
}

}  // namespace

absl::StatusOr<BatchPool> BatchPool::Draw(const RowTable& table,
                                          absl::string_view distribution,
                                          size_t rows_per_batch) {
  if (rows_per_batch == 0 ||
      (distribution != kUniform && distribution != kZipf)) {
    return absl::InvalidArgumentError(
        absl::StrCat("batches of ", rows_per_batch, " rows, ", distribution,
                     ": rows must be above 0, ids ", kUniform, " or ", kZipf));
  }
  std::vector<bench::Draw> draws;
  for (const RowTable::Layer& layer : table.layers()) {
    draws.push_back(distribution == kZipf ? DrawZipf(layer.row_count)
                                          : DrawUniform(layer.row_count));
  }
  const size_t count = std::max(kMinBatches, kMinRows / rows_per_batch);
  BatchPool pool;
  pool.rows_per_batch_ = rows_per_batch;
  pool.indices_.resize(count * rows_per_batch);
  pool.row_ids_.resize(count * rows_per_batch);
  pool.batches_.resize(count);
  std::mt19937_64 random(kSeed);
  size_t at = 0;
  for (size_t b = 0; b < count; ++b) {
    Batch& batch = pool.batches_[b];
    batch.indices =
        absl::MakeConstSpan(pool.indices_).subspan(at, rows_per_batch);
    const std::vector<size_t> split =
        Split(rows_per_batch, table.layers().size(), b);
    for (size_t i = 0; i < split.size(); ++i) {
      if (split[i] == 0) continue;
      const RowTable::Layer& layer = table.layers()[i];
      batch.parts.push_back(
          {layer.layer_id,
           absl::MakeConstSpan(pool.row_ids_).subspan(at, split[i])});
      for (size_t end = at + split[i]; at < end; ++at) {
        pool.row_ids_[at] = draws[i](random);
        pool.indices_[at] = layer.first_index + pool.row_ids_[at];
      }
    }
  }
  return pool;
}

}  // namespace engram::bench
