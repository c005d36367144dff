// Built where RocksDB is not installed.

#include "tests/bench/contestant.h"

namespace engram::bench {
namespace {

class Unavailable final : public GatherContestant {
 public:
  absl::Status Connect(const RowTable&) override { return Error(); }
  absl::Status Prepare(size_t) override { return Error(); }
  absl::Status Start(size_t, const Batch&, absl::Span<std::byte>) override {
    return Error();
  }
  absl::StatusOr<size_t> WaitAny(absl::Time) override { return Error(); }

 private:
  static absl::Status Error() {
    return absl::UnimplementedError(
        "this benchmark was built without RocksDB: install librocksdb-dev");
  }
};

}  // namespace

std::unique_ptr<GatherContestant> MakeRocksDb(const ContestantOptions&) {
  return std::make_unique<Unavailable>();
}

}  // namespace engram::bench
