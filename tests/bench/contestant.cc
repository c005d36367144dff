#include "tests/bench/contestant.h"

#include "absl/strings/str_cat.h"

namespace engram::bench {
namespace {

struct Kind {
  absl::string_view name;
  size_t min_addresses;
  size_t max_addresses;
  std::unique_ptr<GatherContestant> (*make)(const ContestantOptions&);
};

constexpr size_t kAnyNumber = 1024;

constexpr Kind kKinds[] = {
    {"t1", 1, 1, MakeT1},
    {"t2", 1, 1, MakeT2},
    {"tcp_bytes", 1, 1, MakeTcpBytes},
    {"redis", 1, 1, MakeRedis},
    {"memcached", 1, 1, MakeMemcached},
    {"rocksdb", 0, 0, MakeRocksDb},
    {"in_process", 0, 0, MakeInProcess},
    {"easy_grpc", 1, 1, MakeEasyGrpc},
    {"engram", 1, kAnyNumber, MakeEngram},
    {"empty_stream", 1, 1, MakeEmptyStream},
    {"empty_unary", 1, 1, MakeEmptyUnary},
};

}  // namespace

absl::StatusOr<std::unique_ptr<GatherContestant>> MakeContestant(
    const ContestantOptions& options) {
  for (const Kind& kind : kKinds) {
    if (kind.name != options.kind) continue;
    const size_t addresses = options.addresses.size();
    if (addresses < kind.min_addresses || addresses > kind.max_addresses) {
      return absl::InvalidArgumentError(
          absl::StrCat("a contestant of kind ", kind.name, " with ", addresses,
                       " addresses, it takes ", kind.min_addresses, " .. ",
                       kind.max_addresses));
    }
    return kind.make(options);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no kind of contestant is named \"", options.kind, "\""));
}

}  // namespace engram::bench
