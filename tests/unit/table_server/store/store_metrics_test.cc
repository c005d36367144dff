#include "table_server/store/store_metrics.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <sstream>
#include <string>

namespace engram {
namespace {

std::string Scrape(const prometheus::Registry& registry) {
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

TEST(StoreMetricsTest, EveryNumberIsThereFromTheStart) {
  auto registry = std::make_shared<prometheus::Registry>();
  StoreMetrics metrics(registry);
  const std::string text = Scrape(*registry);
  // One a number of StoreStats: a new one has to be exported.
  EXPECT_EQ(registry->Collect().size(), sizeof(StoreStats) / sizeof(uint64_t));
  EXPECT_NE(text.find("engram_table_store_corrupt_blocks 0\n"),
            std::string::npos);
}

TEST(StoreMetricsTest, ShowsWhatWasSet) {
  auto registry = std::make_shared<prometheus::Registry>();
  StoreMetrics metrics(registry);
  metrics.Set({.reads = 7, .queued_reads = 3, .max_queued_reads = 9});
  const std::string text = Scrape(*registry);
  EXPECT_NE(text.find("engram_table_store_reads 7\n"), std::string::npos);
  EXPECT_NE(text.find("engram_table_store_queued_reads 3\n"),
            std::string::npos);
  EXPECT_NE(text.find("engram_table_store_queued_reads_limit 9\n"),
            std::string::npos);
}

}  // namespace
}  // namespace engram
