#ifndef ENGRAM_TESTS_UNIT_COMPUTE_WORKER_TEST_WORKER_H_
#define ENGRAM_TESTS_UNIT_COMPUTE_WORKER_TEST_WORKER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "compute/worker/service.h"
#include "core/base/check.h"
#include "core/rpc/rpc_server.h"
#include "tests/unit/compute/worker/fakes.h"

namespace engram::test {

// The true service over the fakes, listening on `address`.
struct TestWorker {
  struct Options {
    FakeRowSource::Mode mode = FakeRowSource::Mode::kAtOnce;
    std::function<void(StepEngine::Options&)> engine;
    std::function<void(ForwardLimits&)> limits;
  };

  explicit TestWorker(const std::string& address)
      : TestWorker(address, Options()) {}
  TestWorker(const std::string& address, const Options& options)
      : fixture(options.mode, options.engine) {
    ForwardLimits limits = ForwardLimits::For(*fixture.engine);
    if (options.limits) options.limits(limits);
    service = std::make_unique<ComputeServiceImpl>(ComputeServiceImpl::Options{
        .engine = fixture.engine.get(), .limits = limits});
    auto started =
        RpcServer::Start({.listen = address, .services = {service.get()}});
    ENGRAM_CHECK(started.ok());
    server = *std::move(started);
  }
  // As a worker that is killed: calls in flight are cancelled.
  ~TestWorker() {
    server->Shutdown(absl::Now());
    server = nullptr;
    fixture.engine = nullptr;
  }

  EngineFixture fixture;
  std::unique_ptr<ComputeServiceImpl> service;
  std::unique_ptr<RpcServer> server;
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_COMPUTE_WORKER_TEST_WORKER_H_
