#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <string>

#include "core/base/check.h"
#include "engram/v1/table.pb.h"
#include "engram_client/ctl/heat_merge.h"
#include "engram_client/ctl/heat_report.h"
#include "engram_client/ctl/heat_summary.h"
#include "tests/fuzz/fuzz_input.h"

// Input: messages of RecordHeat, each after a byte that says how long it is.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace ctl = engram::ctl;
  google::protobuf::SetLogHandler(nullptr);  // it reports each bad string
  engram::v1::GetTableResponse table;
  for (const uint32_t id : {1, 14}) {
    engram::v1::LayerInfo& layer = *table.add_layers();
    layer.set_layer_id(id);
    layer.set_row_count(1000);
    layer.set_partition_count(10);
  }
  ctl::HeatReader reader;
  ENGRAM_CHECK(reader.SetTable(table).ok());
  for (absl::string_view text = engram::test::AsText(data, size);
       !text.empty();) {
    const auto length = static_cast<uint8_t>(text.front());
    text.remove_prefix(1);
    engram::v1::RecordHeatResponse message;
    if (!message.ParseFromString(std::string(text.substr(0, length))) ||
        !reader.Add(message).ok()) {
      return 0;
    }
    text.remove_prefix(std::min<size_t>(length, text.size()));
  }
  ctl::HeatReport report{.servers = {reader.heat()}};
  auto heat = ctl::MergeHeat(report.servers);
  ENGRAM_CHECK(heat.ok());
  report.heat = *std::move(heat);
  report.summary = ctl::Summarize(report.heat, 5);
  for (const ctl::HeatSummary::Point& point : report.summary.curve) {
    ENGRAM_CHECK(point.share >= 0 && point.share <= 1);
  }
  ENGRAM_CHECK(!ctl::HeatAsText(report).empty());
  ENGRAM_CHECK(!ctl::HeatAsJson(report).empty());
  return 0;
}
