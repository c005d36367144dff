#ifndef ENGRAM_ENGRAM_CLIENT_CTL_LOAD_STEPS_H_
#define ENGRAM_ENGRAM_CLIENT_CTL_LOAD_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/ids.h"
#include "core/base/thread_pool.h"
#include "engram_client/compute_client.h"
#include "engram_client/ctl/load_sizes.h"
#include "engram_client/ctl/load_step_inputs.h"
#include "engram_client/ctl/load_target.h"

namespace engram::ctl {

enum class StepMode { kApply, kForward };

// Load of steps: of each size a few inputs, which come again and again, so
// that every answer can be compared to the bit with the first one to the same
// input. The client's calls block, so each step in flight has a thread.
class StepLoad final : public LoadTarget {
 public:
  struct Options {
    std::vector<LoadSize> sizes;  // tokens
    std::vector<LayerId> layers;  // empty: all
    StepMode mode = StepMode::kForward;
    StepReturn what = StepReturn::kStreams;
    size_t inputs = 1;         // of each size
    uint64_t sample_step = 1;  // one step in so many is compared; 0: none
    uint64_t seed = 1;
    size_t slots = 1;
    uint64_t max_memory_bytes = 0;
  };

  // `client` outlives the load. NOT_FOUND: the model has no such layer.
  // INVALID_ARGUMENT: more tokens than the workers take, a layer twice.
  // RESOURCE_EXHAUSTED naming the sums: more than max_memory_bytes.
  static absl::StatusOr<std::unique_ptr<StepLoad>> Create(
      const Options& options, ComputeClient* client);

  // Asks for every input twice and keeps the first answer: what the two
  // differ in, if they do. The errors of the client.
  absl::StatusOr<std::optional<LoadMismatch>> Learn(absl::Duration timeout);

  std::string unit() const override { return "tokens"; }
  std::string version() const override { return model_.version; }
  std::vector<std::pair<std::string, uint64_t>> client_counts() const override;
  void Prepare(size_t slot, const LoadCall& call) override;
  void Start(size_t slot, absl::Time deadline, Done done) override;
  LoadAnswer Finish(size_t slot, const absl::Status& status) override;

 private:
  struct Known {
    StepInput input;
    StepResults wanted;
  };
  struct Slot {
    const Known* known = nullptr;
    bool compare = false;
    StepResults results;
  };

  StepLoad(const Options& options, std::vector<LayerId> layers,
           ComputeClient* client);

  absl::Status RunStep(const StepInput& input, StepResults& results,
                       absl::Time deadline);

  const Options options_;
  const std::vector<LayerId> layers_;
  ComputeClient& client_;
  const ModelInfo& model_;
  std::vector<Known> known_;  // [sizes, inputs]
  std::vector<Slot> slots_;
  ThreadPool pool_;  // last: its threads use what is above
};

}  // namespace engram::ctl

#endif  // ENGRAM_ENGRAM_CLIENT_CTL_LOAD_STEPS_H_
