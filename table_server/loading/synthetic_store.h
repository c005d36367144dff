#ifndef ENGRAM_TABLE_SERVER_LOADING_SYNTHETIC_STORE_H_
#define ENGRAM_TABLE_SERVER_LOADING_SYNTHETIC_STORE_H_

#include "table_server/loading/partition_store.h"

namespace engram {

// Of a tier that computes its rows: there is nothing to bring.
class SyntheticStore final : public PartitionStore {
 public:
  absl::Status Load(const PartitionRef& /*ref*/,
                    absl::FunctionRef<absl::Status(size_t)>) override {
    return absl::OkStatus();
  }
  void Free(const PartitionRef& /*ref*/) override {}
  absl::Status CheckFits(absl::Span<const PartitionRef>) override {
    return absl::OkStatus();
  }
  uint64_t BytesToLoad(const PartitionRef& /*ref*/) const override { return 0; }
  uint64_t memory_bytes() const override { return 0; }
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_SYNTHETIC_STORE_H_
