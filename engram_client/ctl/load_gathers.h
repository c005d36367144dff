#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_GATHERS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_GATHERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/ids.h"
#include "core/base/page_buffer.h"
#include "engram_client/ctl/load_ids.h"
#include "engram_client/ctl/load_row_check.h"
#include "engram_client/ctl/load_sizes.h"
#include "engram_client/ctl/load_target.h"
#include "engram_client/table_client.h"

namespace engram::ctl {

// Load of gathers: rows of some layers in one call, as many of each, drawn
// anew for every call and compared with the reference.
class GatherLoad final : public LoadTarget {
 public:
  struct Options {
    std::vector<LoadSize> sizes;  // rows of each layer
    std::vector<LayerId> layers;  // empty: all
    double zipf_exponent = 0;
    uint64_t sample_step = 1;  // as RowSample.step
    size_t slots = 1;
    uint64_t max_memory_bytes = 0;
  };

  // `client` outlives the load; `reference` is null where sample_step is 0.
  // NOT_FOUND: the table has no such layer. RESOURCE_EXHAUSTED naming the
  // sums: the slots need more than max_memory_bytes. INVALID_ARGUMENT: a call
  // above what a gather may have, a layer twice.
  static absl::StatusOr<std::unique_ptr<GatherLoad>> Create(
      const Options& options, TableClient* client,
      std::unique_ptr<RowReference> reference);

  std::string unit() const override { return "rows"; }
  std::string version() const override { return client_.table().version; }
  std::vector<std::pair<std::string, uint64_t>> client_counts() const override;
  void Prepare(size_t slot, const LoadCall& call) override;
  void Start(size_t slot, absl::Time deadline, Done done) override;
  LoadAnswer Finish(size_t slot, const absl::Status& status) override;

 private:
  struct Slot {
    uint64_t rows_a_layer = 0;
    RowSample sample;
    std::unique_ptr<GatherHandle> handle;
  };

  GatherLoad(const Options& options, std::vector<LayerId> layers,
             TableClient* client, std::unique_ptr<RowReference> reference,
             PageBuffer ids, PageBuffer rows);

  // A layer's share of what a slot's call has.
  absl::Span<RowId> IdsOf(size_t slot, size_t layer_index);
  absl::Span<std::byte> RowsOf(size_t slot, size_t layer_index);
  // What the call's sample takes, so that a row that nobody writes is seen.
  void Poison(size_t slot);
  void CompareLayer(size_t slot, size_t layer_index, LoadAnswer& answer);

  const Options options_;
  const std::vector<LayerId> layers_;
  TableClient& client_;
  const std::unique_ptr<RowReference> reference_;
  const size_t row_bytes_;
  const RowCheck check_;
  const uint64_t slot_rows_;      // room for
  std::vector<RowIdDraw> draws_;  // by layer
  std::vector<Slot> slots_;
  PageBuffer ids_;  // slot after slot
  PageBuffer rows_;
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_GATHERS_H_
