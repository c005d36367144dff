#ifndef ENGRAM_TABLE_SERVER_LOADING_LOCAL_COPY_H_
#define ENGRAM_TABLE_SERVER_LOADING_LOCAL_COPY_H_

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "table_server/loading/partition_source.h"
#include "table_server/store/local_store.h"

namespace engram {

// What a local store has, as a source. `store` must outlive it.
class LocalCopy final : public PartitionSource {
 public:
  explicit LocalCopy(LocalStore& store) : store_(store) {}
  std::string description() const override { return store_.description(); }
  absl::Status Read(
      const PartitionRef& ref, absl::Span<std::byte> out,
      absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) override {
    return store_.Read(ref, out, on_bytes);
  }

 private:
  LocalStore& store_;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_LOCAL_COPY_H_
