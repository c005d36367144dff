#ifndef ENGRAM_TESTS_BENCH_ROW_READER_H_
#define ENGRAM_TESTS_BENCH_ROW_READER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/base/notification.h"

namespace engram::bench {

// Whoever gives rows of a SyntheticTable.
class RowReader {
 public:
  virtual ~RowReader() = default;

  // Row row_ids[i] to slot i of `out`. Blocks. Thread safety: may be called
  // concurrently.
  virtual absl::Status Gather(absl::Span<const RowId> row_ids,
                              absl::Span<std::byte> out) = 0;
};

// Calls start(done) and waits until somebody has told `done` how it ended.
template <typename Start>
absl::Status WaitForRows(const Start& start) {
  Notification ended;
  absl::Status status;
  start([&](absl::Status told) {
    status = std::move(told);
    ended.Notify();
  });
  ended.Wait();
  return status;
}

}  // namespace engram::bench

#endif  // ENGRAM_TESTS_BENCH_ROW_READER_H_
