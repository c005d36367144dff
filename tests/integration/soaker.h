#ifndef ENGRAM_TESTS_INTEGRATION_SOAKER_H_
#define ENGRAM_TESTS_INTEGRATION_SOAKER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/ids.h"
#include "core/base/mutex.h"
#include "core/base/notification.h"
#include "engram_client/table_client.h"

namespace engram {

struct SoakCounts {
  uint64_t rows_checked = 0;
  uint64_t gathers = 0;
  uint64_t whole = 0;
  uint64_t cancelled = 0;
  uint64_t destroyed = 0;  // before their end
  uint64_t out_of_time = 0;
};

// What all threads have done so far.
//
// Thread safety: all methods may be called concurrently.
class SoakProgress {
 public:
  SoakProgress(uint64_t rows_to_check, absl::Duration longest)
      : rows_to_check_(rows_to_check), until_(absl::Now() + longest) {}

  void Add(const SoakCounts& more);
  // Fails the test, and ends the soak, unless `holds`.
  void Expect(bool holds, absl::string_view otherwise);

  // Until so many rows are checked, something failed or it took too long.
  void WaitForRows(uint64_t rows);
  // Enough rows, a failure or too long.
  bool done() const;
  SoakCounts counts() const;

 private:
  const uint64_t rows_to_check_;
  const absl::Time until_;
  mutable Mutex mutex_;
  CondVar changed_;
  SoakCounts counts_ ABSL_GUARDED_BY(mutex_);
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
};

// Packed rows of whole layers, by layer index. No scale is 0x55 or 0xEE.
using StoredRows = std::vector<std::vector<std::byte>>;

// One gather after the other, each of random rows and brought to its end in a
// random way, with the memory that it may write to: there every byte is
// compared after an end in success, and none may change after any end.
class Soaker {
 public:
  static constexpr uint64_t kMaxRows = 20'000;  // of one gather

  Soaker(const TableInfo& table, const StoredRows& stored,
         SoakProgress& progress);

  void Start(TableClient& client, std::mt19937_64& random);
  void End(std::mt19937_64& random);

  // Nothing was written since End.
  void ExpectSettled() const;

 private:
  // How a gather comes to its end.
  enum class Way { kWait, kCallback, kCancel, kDestroy, kLittleTime, kCount };

  void DrawRows(std::mt19937_64& random);
  std::vector<LayerGather> Layers();
  absl::Status WaitForEnd(std::mt19937_64& random);
  void Dawdle(std::mt19937_64& random) const;
  // How many are right.
  uint64_t CheckRows() const;
  SoakCounts CheckEnd(const absl::Status& status) const;
  size_t row_bytes() const { return table_.row_format.row_bytes(); }

  const TableInfo& table_;
  const StoredRows& stored_;
  SoakProgress& progress_;

  std::vector<size_t> order_;            // layer indices
  std::vector<std::vector<RowId>> ids_;  // by layer index
  // Guard, buffers, guard. It never moves: what is written late is seen here.
  std::vector<std::byte> memory_;
  Way way_ = Way::kWait;
  std::unique_ptr<GatherHandle> handle_;
  std::unique_ptr<Notification> told_;  // null: nobody is told
  std::optional<absl::Status> status_;  // once told
};

}  // namespace engram

#endif  // ENGRAM_TESTS_INTEGRATION_SOAKER_H_
