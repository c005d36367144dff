#ifndef ENGRAM_TABLE_SERVER_LOADING_HTTP_CHECKPOINT_SOURCE_H_
#define ENGRAM_TABLE_SERVER_LOADING_HTTP_CHECKPOINT_SOURCE_H_

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/model/manifest.h"
#include "table_server/loading/http_table.h"
#include "table_server/loading/partition_source.h"

namespace engram {

// Partitions out of a checkpoint on a server: two ranges each, the scales of
// its rows and their codes, put where they belong as they come.
class HttpCheckpointSource final : public PartitionSource {
 public:
  // All must outlive the source. REQUIRES: `table` has the manifest's layers.
  HttpCheckpointSource(const HttpTable& table, const Manifest& manifest,
                       const Clock& clock = Clock::Steady());

  std::string description() const override { return table_.url; }
  // `on_bytes` is also told of 0 bytes, some ten times a second while none
  // come. Errors of HttpReader. After one that says that the server is not
  // there, others are UNAVAILABLE at once for a while: the next source of a
  // partition is not to wait until each has found that out.
  absl::Status Read(
      const PartitionRef& ref, absl::Span<std::byte> out,
      absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) override;

 private:
  absl::Status ReadColumns(
      const PartitionRef& ref, absl::Span<std::byte> out,
      absl::FunctionRef<absl::Status(size_t bytes)> on_bytes);
  absl::Status CheckIsThere();
  void Remember(const absl::Status& status);

  // Bytes of one column, `width` a row, for rows from `first_row` on.
  static HttpRange RangeOf(const HttpTensor& tensor, uint64_t first_row,
                           uint64_t rows, size_t width);
  // Says it once: what is loaded is compared with the manifest anyway.
  void CompareEtag(const HttpTensor& tensor, const std::string& etag);

  const HttpTable& table_;
  const Manifest& manifest_;
  const Clock& clock_;
  Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // the last one
  absl::Time rests_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::atomic<bool> told_of_change_{false};
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_HTTP_CHECKPOINT_SOURCE_H_
