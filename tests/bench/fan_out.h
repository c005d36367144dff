#ifndef ENGRAM_TESTS_BENCH_FAN_OUT_H_
#define ENGRAM_TESTS_BENCH_FAN_OUT_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/base/status_macros.h"
#include "core/base/thread_pool.h"

namespace engram::bench {

// Splits gathers among threads for contestants that read on the thread that
// asks.
//
// Thread safety: Gather may be called concurrently, SetParts not while it runs.
class FanOut {
 public:
  using Gather = absl::FunctionRef<absl::Status(absl::Span<const RowId>,
                                                absl::Span<std::byte>)>;

  explicit FanOut(size_t threads) : pool_({.thread_count = threads}) {}

  void SetParts(size_t parts) { parts_ = std::max<size_t>(1, parts); }

  absl::Status Run(absl::Span<const RowId> row_ids, absl::Span<std::byte> out,
                   Gather gather) {
    if (parts_ == 1) return gather(row_ids, out);
    const size_t row_bytes = out.size() / row_ids.size();
    const size_t at_once = (row_ids.size() + parts_ - 1) / parts_;
    std::vector<absl::Status> statuses((row_ids.size() + at_once - 1) /
                                       at_once);
    pool_.ParallelFor(statuses.size(), [&](size_t i) {
      const absl::Span<const RowId> part =
          row_ids.subspan(i * at_once, at_once);
      statuses[i] = gather(
          part, out.subspan(i * at_once * row_bytes, part.size() * row_bytes));
    });
    for (const absl::Status& status : statuses) ENGRAM_RETURN_IF_ERROR(status);
    return absl::OkStatus();
  }

 private:
  ThreadPool pool_;
  size_t parts_ = 1;
};

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_FAN_OUT_H_
