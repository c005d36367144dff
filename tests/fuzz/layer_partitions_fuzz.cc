#include <google/protobuf/stubs/logging.h>

#include <string>

#include "core/base/check.h"
#include "core/wire/layer_partitions.h"
#include "engram/v1/table.pb.h"
#include "tests/fuzz/fuzz_input.h"

// Input: the bytes of a v1::ExchangeRequest.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using engram::LayerId;
  google::protobuf::SetLogHandler(nullptr);  // it reports each bad string
  static const std::vector<engram::LayerPartitionCount> kLayers = {
      {LayerId{1}, 10}, {LayerId{14}, 64}, {LayerId{2}, 0}};
  engram::v1::ExchangeRequest request;
  if (!request.ParseFromString(std::string(engram::test::AsText(data, size)))) {
    return 0;
  }
  const auto refs = engram::FromLayerPartitions(request.to_free(), kLayers);
  if (!refs.ok()) return 0;
  for (size_t i = 1; i < refs->size(); ++i) {
    ENGRAM_CHECK((*refs)[i - 1] < (*refs)[i]);
  }
  const auto again = engram::FromLayerPartitions(
      engram::ToLayerPartitions(*refs, kLayers), kLayers);
  ENGRAM_CHECK(again.ok() && *again == *refs);
  return 0;
}
