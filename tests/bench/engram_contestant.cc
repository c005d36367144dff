// The product: TableClient over one or several table servers.

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "engram_client/table_client.h"
#include "tests/bench/contestant.h"

namespace engram::bench {
namespace {

constexpr absl::Duration kGatherTimeout = absl::Seconds(20);

class Engram final : public GatherContestant {
 public:
  explicit Engram(std::vector<std::string> addresses)
      : addresses_(std::move(addresses)) {}
  ~Engram() override { handles_.clear(); }

  absl::Status Connect(const RowTable& table) override {
    row_bytes_ = table.row_bytes();
    return absl::OkStatus();
  }

  absl::Status Prepare(size_t max_in_flight) override {
    handles_.clear();
    ended_.Clear();
    handles_.resize(max_in_flight);
    if (client_ != nullptr) return absl::OkStatus();
    TableClient::Options options;
    options.addresses = addresses_;
    options.connect_timeout = kGatherTimeout;
    ENGRAM_ASSIGN_OR_RETURN(client_, TableClient::Create(std::move(options)));
    return client_->WaitUntilComplete(absl::Now() + kGatherTimeout);
  }

  void Rest() override {
    handles_.clear();
    client_.reset();
  }

  absl::Status Start(size_t slot, const Batch& batch,
                     absl::Span<std::byte> out) override {
    std::vector<LayerGather> layers;
    layers.reserve(batch.parts.size());
    size_t at = 0;
    for (const Batch::Part& part : batch.parts) {
      const size_t bytes = part.row_ids.size() * row_bytes_;
      layers.push_back({part.layer, part.row_ids, out.subspan(at, bytes)});
      at += bytes;
    }
    // One gather at a time is waited for by its handle, as a caller would.
    const bool alone = handles_.size() == 1;
    handles_[slot] = client_->Prefetch(
        std::move(layers), absl::Now() + kGatherTimeout,
        alone ? absl::AnyInvocable<void(const absl::Status&)>()
              : [this, slot](const absl::Status& status) {
                  ended_.Push(slot, status);
                });
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> WaitAny(absl::Time deadline) override {
    if (handles_.size() > 1) return ended_.Pop(deadline);
    ENGRAM_RETURN_IF_ERROR(handles_[0]->Wait());
    return 0;
  }

 private:
  const std::vector<std::string> addresses_;
  size_t row_bytes_ = 0;
  EndedGathers ended_;
  std::unique_ptr<TableClient> client_;
  std::vector<std::unique_ptr<GatherHandle>> handles_;
};

}  // namespace

std::unique_ptr<GatherContestant> MakeEngram(const ContestantOptions& options) {
  return std::make_unique<Engram>(options.addresses);
}

}  // namespace engram::bench
