// A TCP proxy that delays, stalls, throttles, resets, freezes and corrupts
// connections. proxy.h lists what it obeys.

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "core/base/flag_checks.h"
#include "tests/fault/tcp_proxy/proxy.h"

namespace {

using engram::WholeNumber;
using engram::fault::Proxy;

// Two file descriptors a connection.
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "engram-fault-proxy: %s\n",
               std::string(status.message()).c_str());
  return 1;
}

int Run(Proxy::Options options) {
  RaiseFileLimit();
  const auto proxy = Proxy::Create(std::move(options));
  if (!proxy.ok()) return Fail(proxy.status());
  std::printf("listening on %s\n", (*proxy)->address().c_str());
  std::fflush(stdout);
  const absl::Status status = (*proxy)->Run();
  return status.ok() ? 0 : Fail(status);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Forwards TCP connections and does them harm on demand.");
  Proxy::Options options;
  app.add_option("--to", options.to, "IPV4:PORT or unix:PATH")->required();
  app.add_option("--seed", options.seed, "Of everything random")
      ->check(WholeNumber(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--max-connections", options.max_connections,
                 "More are reset at once")
      ->check(WholeNumber(1, 1 << 20))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return Run(std::move(options));
}
