#ifndef ENGRAM_TABLE_SERVER_LOADING_VERIFIED_SOURCES_H_
#define ENGRAM_TABLE_SERVER_LOADING_VERIFIED_SOURCES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/base/mutex.h"
#include "core/model/checkpoint.h"
#include "core/model/manifest.h"
#include "table_server/loading/partition_source.h"

namespace engram {

// Partitions from the first of several sources that has them, compared with the
// manifest. A source that cannot give one, or gives other bytes, is followed by
// the next.
//
// Thread safety: all methods may be called concurrently.
class VerifiedSources {
 public:
  using OnBytes = absl::FunctionRef<absl::Status(size_t bytes)>;

  // `sources` in the order they are asked. All must outlive it.
  VerifiedSources(const Manifest& manifest,
                  std::vector<PartitionSource*> sources);

  // Fills `packed`, the whole partition. Blocks; `on_bytes` as
  // PartitionSource::Read has it. On an error `packed` is unspecified, and the
  // gravest of what the sources said is returned: that bytes are there and
  // wrong (FAILED_PRECONDITION, DATA_LOSS) before that there are none.
  absl::Status Fill(const PartitionRef& ref, absl::Span<std::byte> packed,
                    OnBytes on_bytes);
  // The same from `source` alone, which need not be one of them.
  absl::Status FillFrom(PartitionSource& source, const PartitionRef& ref,
                        absl::Span<std::byte> packed, OnBytes on_bytes);

  // Found in what was filled since the start, by the manifest's layers.
  std::vector<RowDefects> defects() const;

 private:
  absl::Status Verify(const PartitionRef& ref, size_t layer_index,
                      absl::Span<const std::byte> packed) const;

  const Manifest& manifest_;
  const std::vector<PartitionSource*> sources_;
  mutable Mutex mutex_;
  std::vector<RowDefects> defects_ ABSL_GUARDED_BY(mutex_);
};

// "layer 1 partition 7".
std::string NameOf(const PartitionRef& ref);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_VERIFIED_SOURCES_H_
