#ifndef ENGRAM_TESTS_UNIT_TABLE_SERVER_SERVICE_WAITING_GATHERS_FIXTURE_H_
#define ENGRAM_TESTS_UNIT_TABLE_SERVER_SERVICE_WAITING_GATHERS_FIXTURE_H_

#include <gtest/gtest.h>

#include <vector>

#include "table_server/tier/fake_row_tier.h"
#include "tests/unit/table_server/service/gather_stream_fixture.h"

namespace engram::test {

// A service whose tier has to fetch the rows whose id is odd.
class WaitingGathersFixture : public GatherStreamFixture {
 protected:
  ~WaitingGathersFixture() override {
    cold_tier_.Open();
    server_.reset();
    service_.reset();
  }
  void Serve(const ServiceLimits& limits = {}, size_t worker_threads = 0) {
    Start(limits, &cold_tier_, worker_threads);
  }
  uint64_t BytesOf(size_t rows) const {
    return rows * manifest_.row_format().row_bytes();
  }
  // As many as make a gather large where pieces and small gathers have a row.
  const std::vector<RowId> large_cold_ = {1, 3};
  const std::vector<RowId> large_hot_ = {2, 4};

  FakeRowTier cold_tier_{tier_, [](size_t, RowId row) { return row % 2 != 0; }};
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_UNIT_TABLE_SERVER_SERVICE_WAITING_GATHERS_FIXTURE_H_
